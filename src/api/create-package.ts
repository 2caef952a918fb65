import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { decodeUtf8, quoteGo } from '../document/go-json.js';
import { readInputFile } from '../files/read-file.js';
import { type PackageBlob, schemas } from '../model/declarative-config.js';
import { detectImageType } from '../model/image-type.js';

/** Options of `createPackage`. */
export interface CreatePackageOptions extends CancelOptions {
  defaultChannel?: string | undefined;
  /** File whose content becomes the description. */
  descriptionFile?: string | undefined;
  /** Image file that becomes the icon. */
  iconFile?: string | undefined;
}

/**
 * Creates the `olm.package` blob of a new package; `addToCatalog` adds its first bundle. Throws
 * OpmateError for files that cannot be read and icons that are no images.
 */
export async function createPackage(name: string, options: CreatePackageOptions = {}): Promise<PackageBlob> {
  const { defaultChannel = '', descriptionFile, iconFile } = options;
  const blob: PackageBlob = {
    schema: schemas.package,
    name,
    defaultChannel,
    description: '',
    properties: [],
  };
  if (descriptionFile !== undefined)
    blob.description = decodeUtf8(await readInputFile(descriptionFile, options));
  if (iconFile !== undefined) {
    const data = await readInputFile(iconFile, options);
    blob.icon = { base64data: data.toString('base64'), mediatype: iconType(iconFile, data) };
  }
  return blob;
}

function iconType(file: string, data: Buffer): string {
  if (data.length === 0) {
    throw new OpmateError('INVALID', `detect icon mediatype: Empty buffer`, {
      hint: `check ${file}: the file is empty`,
    });
  }
  const type = detectImageType(data);
  if (type.startsWith('image/')) return type;
  throw new OpmateError('INVALID', `detected invalid type ${quoteGo(type)}: not an image`, {
    hint: `use an SVG, PNG, JPEG or GIF image`,
  });
}
