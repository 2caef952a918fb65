import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';

/** What findings are printed as: for people, as data, for code hosts and for build servers. */
export const reportFormats = ['text', 'json', 'yaml', 'sarif', 'junit', 'github'] as const;

export type ReportFormat = (typeof reportFormats)[number];

/** Reads the value of `--output`. Throws UsageError. */
export function parseReportFormat(value: string): ReportFormat {
  const format = reportFormats.find((one) => one === value);
  if (format !== undefined) return format;
  throw new UsageError(`invalid --output value ${quoteGo(value)}, expected (${reportFormats.join('|')})`);
}
