/** Something that is wrong with what is to be rendered, and where. */
export interface Finding {
  message: string;
  /** Within the bundle, as in `manifests/csv.yaml`, or as the user named it. */
  file?: string | undefined;
  /** From 1. */
  line?: number | undefined;
  hint?: string | undefined;
}

/** A finding as one line: `FILE:LINE: MESSAGE`. */
export function describeFinding({ file, line, message }: Finding): string {
  if (file === undefined) return message;
  return `${file}:${line === undefined ? '' : `${line}:`} ${message}`;
}
