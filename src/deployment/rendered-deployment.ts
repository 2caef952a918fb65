import type { PlainObject } from '../kube/object.js';
import type { Diagnostic } from '../core/diagnostic.js';
import type { Pin } from '../source/content/content.js';

/** What one deployment document becomes. */
export interface RenderedDeployment {
  name: string;
  /** Of the document itself; empty where it names none. */
  namespace: string;
  /** Where the operator is installed. */
  installNamespace: string;
  packageName?: string;
  version?: string;
  /** Clouds from which the operator asks for credentials. */
  clouds?: readonly string[];
  /** Whether the document asks that nothing be changed on the cluster. */
  isPaused: boolean;
  /** Sorted by kind, namespace and name; empty where there are findings. */
  objects: readonly PlainObject[];
  /** What the sources were found to be. */
  pins: readonly Pin[];
  /** SHA-256 of the objects as YAML, which stands for exactly what was reviewed; empty where there are findings. */
  hash: string;
  /** Everything that speaks against it, with the files that the user named. */
  findings: Diagnostic[];
  /** What is worth knowing, and no reason to stop. */
  warnings: Diagnostic[];
}
