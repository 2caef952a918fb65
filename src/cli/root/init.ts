import { encodeBlob } from '../../model/encode.js';
import { OpmateError } from '../../core/errors.js';
import { decodeUtf8, quoteGo } from '../../document/go-json.js';
import { type PackageBlob, schemas } from '../../model/declarative-config.js';
import { detectImageType } from '../../model/image-type.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { readInputFile } from '../input.js';
import { writeAll } from '../output.js';
import { catalogFormat } from '../formats.js';

interface InitCommandOptions extends GlobalOptions {
  defaultChannel?: string;
  icon?: string;
  description?: string;
  output?: string;
}

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
  if (options.description !== undefined)
    blob.description = decodeUtf8(await readInputFile(options.description));
  if (options.icon !== undefined) {
    const data = await readInputFile(options.icon);
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
