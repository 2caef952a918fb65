const binaryPowers: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const decimalPowers: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const decimalSuffixes = new Map(Object.entries(decimalPowers).map(([suffix, power]) => [power, suffix]));

/** Maximum digits and exponent of a quantity. */
const maxLength = 100;

/**
 * Returns the canonical form of a Kubernetes quantity: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. Parts
 * below one billionth are rounded away from zero, amounts beyond 63 bits are capped. Undefined for invalid text.
 * (Source: apimachinery's resource quantities.)
 */
export function canonicalQuantity(text: string): string | undefined {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})$/.exec(text.trim());
  if (match === null || text.length > maxLength) return undefined;
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const exponent = /^[eE][+-]?\d/.test(suffix) ? Number(suffix.slice(1)) : undefined;
  const binary = binaryPowers[suffix];
  // Amount in billionths.
  let scaled = BigInt(whole + fraction);
  if (binary !== undefined) scaled <<= BigInt(binary);
  const power = 9 - fraction.length + (exponent ?? (binary === undefined ? (decimalPowers[suffix] ?? 0) : 0));
  if (power >= 0) scaled *= 10n ** BigInt(power);
  else {
    const divisor = 10n ** BigInt(-power);
    scaled = (scaled + divisor - 1n) / divisor;
  }
  if (scaled === 0n) return '0';
  const billion = 10n ** 9n;
  const largest = (2n ** 63n - 1n) * billion;
  if (scaled > largest) scaled = largest;
  const minus = sign === '-' ? '-' : '';
  if (binary !== undefined && scaled >= 1024n * billion) return minus + binaryText(scaled, billion);
  let decimal = -9;
  while (scaled % 1000n === 0n) {
    scaled /= 1000n;
    decimal += 3;
  }
  if (exponent !== undefined) return `${minus}${scaled}${decimal === 0 ? '' : `e${decimal}`}`;
  return `${minus}${scaled}${decimalSuffixes.get(decimal) ?? `e${decimal}`}`;
}

function binaryText(scaled: bigint, billion: bigint): string {
  let value = (scaled + billion - 1n) / billion;
  let power = 0;
  while (value % 1024n === 0n) {
    value /= 1024n;
    power += 10;
  }
  const suffix = Object.entries(binaryPowers).find(([, bits]) => bits === power)?.[0] ?? '';
  return `${value}${suffix}`;
}
