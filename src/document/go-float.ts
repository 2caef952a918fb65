/**
 * Returns a float as Go's `%v` and `%g` print it: shortest digits, with an exponent below -4 and from `limit`. (Source:
 * strconv.FormatFloat.)
 */
export function formatGoFloat(value: number, limit = 6): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const [digits = '', power = ''] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= limit) return `${digits}e${power.replace(/^(.)(\d)$/, '$10$2')}`;
  return Object.is(value, -0) ? '-0' : String(value);
}
