/**
 * Detects the media type of an image from its first bytes, SVG from its text; `unknown` otherwise. (Source: `opm init`,
 * which checks for SVG first.)
 */
export function detectImageType(data: Uint8Array): string {
  if (isSvg(data)) return 'image/svg+xml';
  for (const [type, matches] of signatures) if (matches(data)) return type;
  return 'unknown';
}

type Signature = (data: Uint8Array) => boolean;

/** Matches bytes at an offset, in hexadecimal; `..` is any byte. */
function bytes(pattern: string, offset = 0): Signature {
  const expected = pattern.split(' ').map((byte) => (byte === '..' ? undefined : Number.parseInt(byte, 16)));
  return (data) => expected.every((byte, i) => byte === undefined || data[offset + i] === byte);
}

const signatures: readonly (readonly [string, Signature])[] = [
  ['image/jpeg', bytes('ff d8 ff')],
  ['image/jp2', bytes('00 00 00 0c 6a 50 20 20 0d 0a 87 0a 00')],
  ['image/png', bytes('89 50 4e 47')],
  ['image/gif', bytes('47 49 46')],
  ['image/webp', bytes('57 45 42 50', 8)],
  [
    'image/x-canon-cr2',
    (data) =>
      (bytes('49 49 2a 00')(data) || bytes('4d 4d 00 2a')(data)) && bytes('43 52 02')(data.subarray(8)),
  ],
  ['image/tiff', (data) => data.length > 10 && (bytes('49 49 2a 00')(data) || bytes('4d 4d 00 2a')(data))],
  ['image/bmp', bytes('42 4d')],
  ['image/vnd.ms-photo', bytes('49 49 bc')],
  ['image/vnd.adobe.photoshop', bytes('38 42 50 53')],
  ['image/vnd.microsoft.icon', bytes('00 00 01 00')],
  ['image/heif', isHeif],
  ['image/vnd.dwg', bytes('41 43 31 30')],
];

function text(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.length).toString('latin1');
}

/** Matches the brands at the beginning of an ISO media file, which has its length first. */
function isHeif(data: Uint8Array): boolean {
  const { length } = data;
  const end = length < 16 ? length + 1 : new DataView(data.buffer, data.byteOffset).getUint32(0);
  if (!bytes('66 74 79 70', 4)(data) || end > length) return false;
  const brands = text(data.subarray(8, end)).match(/[\s\S]{4}/g) ?? [];
  return brands[0] === 'heic' || (/^m[is]f1$/.test(brands[0] ?? '') && brands.slice(2).includes('heic'));
}

function isSvg(data: Uint8Array): boolean {
  if (data.length >= 24 && data.subarray(0, 24).some((byte) => byte <= 8)) return false;
  const body = text(data).replace(/<!--[\s\S]*?-->/g, '');
  return /^\s*(?:<\?xml[^>]*>\s*)?(?:<!doctype svg[^>]*>\s*)?<svg[^>]*>[^*]*<\/svg>\s*$/i.test(body);
}
