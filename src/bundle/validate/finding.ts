import type { Finding } from '../../kube/finding.js';

/** Something that a validator found in a bundle. */
export interface ValidationFinding extends Finding {
  level: 'error' | 'warning';
  /** Which validator found it, as in `csv`; optional ones by the name that chooses them. */
  validator: string;
  /** `opm` finds this too but does not tell it. */
  isUntold?: boolean;
}

/** What one check found, before it is known where the file is. */
export interface Fault {
  level: 'error' | 'warning';
  message: string;
  /** Leads to what is at fault in its manifest. */
  path?: readonly (string | number)[];
  /** Where it is not the manifest that is being checked. */
  file?: string;
  /** Where it is known without the path. */
  line?: number;
}

/** An error at a place of a manifest. */
export function errorAt(path: readonly (string | number)[], message: string): Fault {
  return { level: 'error', message, path };
}

/** The same, but only worth attention. */
export function warningAt(path: readonly (string | number)[], message: string): Fault {
  return { level: 'warning', message, path };
}
