import { ConnectionError, errorCodes } from './protocol.js';

/** Code lengths in bits of the 256 bytes and EOS; the code is canonical. (Source: RFC 7541, appendix B.) */
const lengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const endOfString = 256;
const maxLength = 30;

/** Symbols in the order of their codes; for each length the first code and the position of its symbol. */
const symbols = lengths
  .map((_, symbol) => symbol)
  .sort((a, b) => (lengths[a] as number) - (lengths[b] as number) || a - b);
const firstCodes = new Int32Array(maxLength + 1);
const firstPlaces = new Int32Array(maxLength + 2);

for (let length = 1, code = 0, place = 0; length <= maxLength; length++) {
  code <<= 1;
  firstCodes[length] = code;
  firstPlaces[length] = place;
  const count = lengths.filter((other) => other === length).length;
  code += count;
  place += count;
  firstPlaces[length + 1] = place;
}

/** Decodes a Huffman-coded string of a header block. Throws ConnectionError COMPRESSION_ERROR. */
export function decodeHuffman(bytes: Uint8Array): string {
  let text = '';
  let [code, length] = [0, 0];
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1);
      length++;
      const first = firstPlaces[length] as number;
      const offset = code - (firstCodes[length] as number);
      if (offset >= (firstPlaces[length + 1] as number) - first) {
        if (length === maxLength) throw invalid();
        continue;
      }
      const symbol = symbols[first + offset] as number;
      if (symbol === endOfString) throw invalid();
      text += String.fromCharCode(symbol);
      code = 0;
      length = 0;
    }
  }
  // The last byte is padded with the first bits of EOS, which are ones.
  if (length > 7 || code !== (1 << length) - 1) throw invalid();
  return text;
}

function invalid(): ConnectionError {
  return new ConnectionError(errorCodes.COMPRESSION_ERROR, 'invalid Huffman code');
}
