/** Size of a tar block in bytes. */
export const tarBlockSize = 512;

/** Two empty blocks, which end an archive. */
export const tarEnd: Buffer = Buffer.alloc(2 * tarBlockSize);

/** Maximum size in eleven octal digits: 8 GiB - 1. */
const maxPlainSize = 0o77777777777;
/** Maximum length of a name in a header. */
export const maxTarName = 100;

/** Returns the bytes of content in an archive, padded to whole blocks. */
export function paddedSize(size: number): number {
  return Math.ceil(size / tarBlockSize) * tarBlockSize;
}

/** Returns the length of the result of `tarFileHeader`. */
export function tarHeaderSize(path: string, size: number): number {
  return isPlain(path, size) ? tarBlockSize : 3 * tarBlockSize;
}

/**
 * Returns the bytes before the content of a file: a ustar header (POSIX.1-1988), preceded by PAX records
 * (POSIX.1-2001) for a long name or large file. Mode 0644, owner and group 0, modification time 1970. `path` is ASCII
 * of at most 256 characters.
 */
export function tarFileHeader(path: string, size: number): Buffer {
  if (isPlain(path, size)) return encodeTarHeader({ name: path, size, type: '0' });
  const records = Buffer.alloc(tarBlockSize);
  const text = `${path.length > maxTarName ? encodePaxRecord('path', path) : ''}${encodePaxRecord('size', String(size))}`;
  const length = records.write(text, 'latin1');
  const name = path.slice(0, maxTarName);
  return Buffer.concat([
    encodeTarHeader({ name: `PaxHeader/${name.slice(0, 80)}`, size: length, type: 'x' }),
    records,
    encodeTarHeader({ name, size: size <= maxPlainSize ? size : 0, type: '0' }),
  ]);
}

function isPlain(path: string, size: number): boolean {
  return path.length <= maxTarName && size <= maxPlainSize;
}

/** Returns the PAX record `LENGTH KEY=VALUE\n` with the length of the whole record in bytes. */
export function encodePaxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = Buffer.byteLength(rest);
  let length = size + 1;
  while (size + String(length).length !== length) length++;
  return `${length}${rest}`;
}

interface TarHeader {
  /** ASCII; cut at 100 characters. */
  name: string;
  prefix?: string;
  /** Default 0644. */
  mode?: number;
  size: number;
  /** A file, a directory, or PAX records. */
  type: '0' | '5' | 'x';
  /** Write device numbers, as zeros; default true. */
  hasDevices?: boolean;
}

/** Returns a ustar header with owner and group 0 and modification time 1970. */
export function encodeTarHeader(fields: TarHeader): Buffer {
  const { name, prefix = '', mode = 0o644, size, type, hasDevices = true } = fields;
  const block = Buffer.alloc(tarBlockSize);
  const octal = (value: number, digits: number, position: number) =>
    void block.write(value.toString(8).padStart(digits, '0'), position, 'latin1');
  block.write(name.slice(0, maxTarName), 0, 'latin1');
  octal(mode, 7, 100);
  octal(0, 7, 108);
  octal(0, 7, 116);
  octal(size, 11, 124);
  octal(0, 11, 136);
  block.write(type, 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  if (hasDevices) {
    octal(0, 7, 329);
    octal(0, 7, 337);
  }
  block.write(prefix, 345, 'latin1');
  // The checksum reads its own field as spaces.
  block.fill(0x20, 148, 156);
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    6,
    148,
  );
  block[154] = 0;
  return block;
}
