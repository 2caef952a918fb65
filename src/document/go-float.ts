/**
 * Returns a float as Go's `%v` and `%g` print it: shortest digits, with an exponent below 1e-4 and from 1e6. (Source:
 * strconv.FormatFloat.)
 */
export function formatGoFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const [digits = '', power = ''] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 6) return `${digits}e${power.replace(/^(.)(\d)$/, '$10$2')}`;
  return Object.is(value, -0) ? '-0' : String(value);
}
