/** A finding as the formats for programs take it. */
export interface ReportItem {
  /** The id of its rule. */
  rule: string;
  level: 'error' | 'warning' | 'notice';
  message: string;
  hint?: string | undefined;
  /** What it is about, from the widest to the narrowest. */
  names: readonly { kind: string; name: string }[];
  file?: string | undefined;
  /** From 1. */
  line?: number | undefined;
}

/** What a finding may be of. */
export interface ReportRule {
  id: string;
  level: ReportItem['level'];
  summary: string;
}
