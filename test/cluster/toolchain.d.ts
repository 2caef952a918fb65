/** Path of each program; undefined where it is missing. */
export function findPrograms(release: string): Record<string, string | undefined>;
/** Why tests of the cluster cannot run, in one line; undefined where all programs are there. */
export function missingPrograms(release: string): string | undefined;
/** The requested release: `1.36.3`. */
export function requestedRelease(): string;
