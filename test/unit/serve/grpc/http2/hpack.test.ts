import { describe, expect, it } from 'vitest';
import { HeaderDecoder, encodeHeaderBlock } from '../../../../../src/serve/grpc/http2/hpack.js';
import { ConnectionError, errorCodes } from '../../../../../src/serve/grpc/http2/protocol.js';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

function decode(decoder: HeaderDecoder, block: Buffer): string[] | undefined {
  return decoder.decode(block)?.map(({ name, value }) => `${name}: ${value}`);
}

describe('HeaderDecoder', () => {
  it.each([
    [
      'Huffman codes',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
    ],
    [
      'plain strings',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
    ],
  ])('reads the requests of RFC 7541, appendix C, in %s', (_, blocks) => {
    const decoder = new HeaderDecoder();
    expect(blocks.map((block) => decode(decoder, hex(block)))).toEqual([
      [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com'],
      [':method: GET', ':scheme: http', ':path: /', ':authority: www.example.com', 'cache-control: no-cache'],
      [
        ':method: GET',
        ':scheme: https',
        ':path: /index.html',
        ':authority: www.example.com',
        'custom-key: custom-value',
      ],
    ]);
  });

  it('evicts the oldest fields, and all of them when the table is resized to zero', () => {
    const decoder = new HeaderDecoder();
    const field = (name: string, size: number): Buffer =>
      Buffer.concat([
        hex('40 01'),
        Buffer.from(name),
        hex('7f'),
        varint(size - 127),
        Buffer.alloc(size, 'v'),
      ]);
    for (const name of ['a', 'b', 'c']) decode(decoder, field(name, 1300));
    // 3 × (1 + 1300 + 32) = 3999 of 4096 bytes: the next one takes the place of the first.
    expect(decode(decoder, hex('c0'))?.[0]).toMatch(/^a: v/);
    decode(decoder, field('d', 1300));
    expect(decode(decoder, hex('c0'))?.[0]).toMatch(/^b: v/);
    expect(decode(decoder, hex('20'))).toEqual([]);
    expect(() => decode(decoder, hex('be'))).toThrow('invalid index 62');
  });

  it.each([
    ['index 0', '80'],
    ['an index beyond the tables', 'ff 80 01'],
    ['an integer that does not end', '7f ff ff ff ff ff'],
    ['a string that is cut off', '00 05 61'],
    ['a block that is cut off', '40'],
    ['a table larger than allowed', '3f e2 1f'],
    ['a table size behind a field', '82 20'],
    ['a Huffman code of padding longer than 7 bits', '00 82 1f ff 00'],
    ['a Huffman code with zeros for padding', '00 81 00 00'],
    ['the end of a string within a string', '00 84 ff ff ff ff 00'],
  ])('refuses %s', (_, block) => {
    const decoder = new HeaderDecoder();
    expect(() => decode(decoder, hex(block))).toThrow(
      expect.objectContaining({ code: errorCodes.COMPRESSION_ERROR }) as ConnectionError,
    );
  });

  it('returns undefined for a list that is too large, and keeps its fields in the table', () => {
    const decoder = new HeaderDecoder();
    const large = Buffer.concat([hex('40 01 61 7f'), varint(4000 - 127), Buffer.alloc(4000, 'x')]);
    expect(decode(decoder, Buffer.concat([large, Buffer.alloc(20, 0xbe)]))).toBeUndefined();
    expect(decode(decoder, hex('be'))?.[0]).toMatch(/^a: x{4000}$/);
    expect(decode(decoder, Buffer.alloc(129, 0x82))).toBeUndefined();
    expect(decode(decoder, Buffer.alloc(128, 0x82))).toHaveLength(128);
  });
});

describe('encodeHeaderBlock', () => {
  it('encodes fields that decode to the same values, of any length', () => {
    const long = 'm'.repeat(30_000);
    const block = encodeHeaderBlock({
      ':status': '200',
      'grpc-status': '0',
      'grpc-message': long,
      ':empty': '',
    });
    expect(block[0]).toBe(0x88);
    expect(decode(new HeaderDecoder(), block)).toEqual([
      ':status: 200',
      'grpc-status: 0',
      `grpc-message: ${long}`,
      ':empty: ',
    ]);
  });
});

function varint(value: number): Buffer {
  const bytes = [];
  let rest = value;
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
