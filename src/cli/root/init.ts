import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { catalogOutput } from '../command/shared-flags.js';
import { encodeBlob } from '../../model/encode.js';
import { OpmateError } from '../../core/errors.js';
import { decodeUtf8, quoteGo } from '../../document/go-json.js';
import { type PackageBlob, schemas } from '../../model/declarative-config.js';
import { detectImageType } from '../../model/image-type.js';
import { readInputFile } from '../input.js';
import { writeAll } from '../output.js';

/** `opmate init`: an `olm.package` blob for a new package on stdout; nothing for an empty name. */
export const command = defineCommand({
  summary: 'write an olm.package blob for a new package',
  tool: 'opm',
  arguments: [argument('<package>', 'name of the package')],
  flags: {
    output: catalogOutput,
    defaultChannel: text('channel', 'default channel of the package', { short: 'c' }),
    icon: text('file', 'image file to embed as the icon', { short: 'i', mayBeEmpty: true }),
    description: text('file', 'file whose content becomes the description', { short: 'd', mayBeEmpty: true }),
  },
  examples: [
    ['Begin a catalog with a package', 'opmate init demo --default-channel stable -o yaml > package.yaml'],
    ['Add a description and an icon', 'opmate init demo -c stable -d README.md -i icon.svg'],
  ],
  async run({ context, args: [packageName], options }) {
    const { output: format } = options;
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
  },
});

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
