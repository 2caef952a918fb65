/** The part of WebAssembly that is used; its types come with those of browsers only. */
interface Assembly {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: object };
}

/** Exports of the module of `assemble`. */
interface FnvModule {
  memory: { buffer: ArrayBuffer };
  before: { value: bigint };
  after: { value: bigint };
  /** Adds the first bytes of the memory to both hashes. */
  update(length: number): void;
}

const offsetBasis = 0xcbf29ce484222325n;

/** Maximum bytes that are hashed at once. */
const pageSize = 64 * 1024;

/** Hashes to which bytes are added. */
export type HashSide = 'before' | 'after' | 'both';

/**
 * Two 64-bit FNV-1a hashes of mostly equal bytes, in the time of one: a multiplication waits for the one before it, so the
 * second hash fills the gap. Where WebAssembly is missing or its memory cannot be reserved, in several times the time.
 */
export class FnvPair {
  readonly #module = loadModule();
  readonly #plain = { before: new Fnv64(), after: new Fnv64() };

  update(bytes: Uint8Array, side: HashSide): void {
    const module = this.#module;
    if (module === undefined) {
      if (side !== 'after') this.#plain.before.update(bytes);
      if (side !== 'before') this.#plain.after.update(bytes);
      return;
    }
    const { before, after } = module;
    const [first, second] = [before.value, after.value];
    const memory = new Uint8Array(module.memory.buffer);
    for (let start = 0; start < bytes.length; start += pageSize) {
      const piece = bytes.subarray(start, start + pageSize);
      memory.set(piece);
      module.update(piece.length);
    }
    if (side === 'before') after.value = second;
    if (side === 'after') before.value = first;
  }

  /** Returns both hashes in hexadecimal digits. */
  digests(): { before: string; after: string } {
    const { before, after } = this.#module ?? {};
    if (before === undefined || after === undefined)
      return { before: this.#plain.before.digest(), after: this.#plain.after.digest() };
    return { before: toHex(before.value), after: toHex(after.value) };
  }
}

const toHex = (hash: bigint): string => BigInt.asUintN(64, hash).toString(16).padStart(16, '0');

function loadModule(): FnvModule | undefined {
  const { WebAssembly } = globalThis as { WebAssembly?: Assembly };
  if (WebAssembly === undefined) return undefined;
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(assemble())).exports as FnvModule;
  } catch {
    // The address space may be limited.
    return undefined;
  }
}

/** Returns the module: a page of memory, two hashes, and the function that adds bytes to both. */
function assemble(): Uint8Array {
  const [i32, i64] = [0x7f, 0x7e];
  const [length, position, byte, before, after] = [0, 1, 2, 3, 4];
  const [get, set, tee, getGlobal, setGlobal] = [0x20, 0x21, 0x22, 0x23, 0x24];
  const [i32Const, i64Const, add, less, load, xor, multiply] = [0x41, 0x42, 0x6a, 0x49, 0x31, 0x85, 0x7e];
  const [loop, nothing, branchIf, end] = [0x03, 0x40, 0x0d, 0x0b];
  const prime = [i64Const, ...encodeSigned(0x100000001b3n)];
  const step = (hash: number): number[] => [get, hash, get, byte, xor, ...prime, multiply, set, hash];
  const code = [
    ...[getGlobal, 0, set, before, getGlobal, 1, set, after],
    ...[loop, nothing, get, position, load, 0, 0, set, byte, ...step(before), ...step(after)],
    ...[get, position, i32Const, 1, add, tee, position, get, length, less, branchIf, 0, end],
    ...[get, before, setGlobal, 0, get, after, setGlobal, 1, end],
  ];
  const body = [
    ...list([
      [1, i32],
      [3, i64],
    ]),
    ...code,
  ];
  const hash = [i64, 1, i64Const, ...encodeSigned(BigInt.asIntN(64, offsetBasis)), end];
  const [asFunction, asMemory, asGlobal] = [0, 2, 3];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list([[0x60, 1, i32, 0]])),
    ...section(3, list([[0]])),
    ...section(5, list([[0, 1]])),
    ...section(6, list([hash, hash])),
    ...section(
      7,
      list([
        [...text('memory'), asMemory, 0],
        [...text('update'), asFunction, 0],
        [...text('before'), asGlobal, 0],
        [...text('after'), asGlobal, 1],
      ]),
    ),
    ...section(10, list([[...encodeSize(body.length), ...body]])),
  ]);
}

const section = (id: number, content: readonly number[]): number[] => [
  id,
  ...encodeSize(content.length),
  ...content,
];

const list = (items: readonly (readonly number[])[]): number[] => [
  ...encodeSize(items.length),
  ...items.flat(),
];

const text = (name: string): number[] => [...encodeSize(name.length), ...Buffer.from(name)];

/** Encodes a length of less than 16,384 as LEB128. */
const encodeSize = (size: number): number[] => (size < 0x80 ? [size] : [(size & 0x7f) | 0x80, size >> 7]);

/** Encodes an integer as signed LEB128. */
function encodeSigned(value: bigint): number[] {
  const bytes: number[] = [];
  for (let rest = value; ;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    const isLast = rest === (low < 0x40 ? 0n : -1n);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

/** 64-bit FNV-1a in two halves: a BigInt per byte would take a minute for a large catalog. */
class Fnv64 {
  #high = 0xcbf29ce4 | 0;
  #low = 0x84222325 | 0;

  update(bytes: Uint8Array): void {
    let high = this.#high;
    let low = this.#low;
    for (let index = 0; index < bytes.length; index++) {
      low ^= bytes[index] as number;
      // Times 2^40 + 0x1b3, in 32-bit integers; the next byte waits only for the low half.
      const carry = ((low >>> 16) * 0x1b3 + (((low & 0xffff) * 0x1b3) >>> 16)) >>> 16;
      high = (Math.imul(high, 0x1b3) + carry + (low << 8)) | 0;
      low = Math.imul(low, 0x1b3);
    }
    this.#high = high;
    this.#low = low;
  }

  digest(): string {
    return [this.#high, this.#low].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }
}

/** Returns the 64-bit FNV-1a as Go's `%x` prints it, without leading zeros. */
export function computeFnv(bytes: Uint8Array): string {
  const hash = new Fnv64();
  hash.update(bytes);
  return hash.digest().replace(/^0+(?=.)/, '');
}
