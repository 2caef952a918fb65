import { readFile, stat } from 'node:fs/promises';
import { encodeBlob } from '../../catalog/write.js';
import { LimitError, OpmateError, messageOf, systemCode } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import { decodeUtf8 } from '../../core/go-json.js';
import { type PackageBlob, schemas } from '../../model/declarative-config.js';
import { detectImageType } from '../../model/image-type.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { writeAll } from '../output.js';
import { catalogFormat } from './render.js';

interface InitCommandOptions extends GlobalOptions {
  defaultChannel?: string;
  icon?: string;
  description?: string;
  output?: string;
}

const maxInputSize = 64 * 1024 * 1024;

/** `opmate init`: an `olm.package` blob for a new package on stdout; nothing for an empty name. */
export async function init(
  context: CommandContext,
  packageName: string,
  options: InitCommandOptions,
): Promise<void> {
  const format = catalogFormat(options.output);
  const blob: PackageBlob = {
    schema: schemas.package,
    name: packageName,
    defaultChannel: options.defaultChannel ?? '',
    description: '',
    properties: [],
  };
  if (options.description !== undefined) blob.description = decodeUtf8(await readInput(options.description));
  if (options.icon !== undefined) {
    const data = await readInput(options.icon);
    blob.icon = { base64data: data.toString('base64'), mediatype: iconType(options.icon, data) };
  }
  if (packageName !== '') await writeAll(context.stdout, encodeBlob({ kind: 'package', blob }, format));
}

function iconType(file: string, data: Buffer): string {
  if (data.length === 0) {
    throw new OpmateError('INVALID', `detect icon mediatype: Empty buffer`, {
      hint: `${file} has no content`,
    });
  }
  const type = detectImageType(data);
  if (type.startsWith('image/')) return type;
  throw new OpmateError('INVALID', `detected invalid type ${quoteGo(type)}: not an image`, {
    hint: `${file} must be an SVG, PNG, JPEG, GIF or another image`,
  });
}

async function readInput(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > maxInputSize) throw new LimitError(`${file}: more than ${maxInputSize} bytes`);
    return await readFile(file);
  } catch (error) {
    if (error instanceof OpmateError) throw error;
    const reason = systemCode(error) === 'ENOENT' ? 'no such file or directory' : messageOf(error);
    throw new OpmateError('IO', `open ${file}: ${reason}`, { file, cause: error });
  }
}
