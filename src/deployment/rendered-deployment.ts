import type { PlainObject } from '../kube/object.js';
import type { Diagnostic } from '../core/diagnostic.js';
import type { Pin } from '../source/content/content.js';

/** A rendered deployment document. */
export interface RenderedDeployment {
  name: string;
  /** Namespace of the document; empty if not set. */
  namespace: string;
  /** Namespace of the operator. */
  installNamespace: string;
  packageName?: string;
  version?: string;
  /** Clouds from which the operator requests credentials. */
  clouds?: readonly string[];
  /** The document pauses changes on the cluster. */
  isPaused: boolean;
  /** Objects sorted by kind, namespace and name; empty if there are findings. */
  objects: readonly PlainObject[];
  /** Resolved sources. */
  pins: readonly Pin[];
  /** SHA-256 of the objects as YAML, which identifies the reviewed render; empty if there are findings. */
  hash: string;
  /** All problems, with files as the user named them. */
  findings: Diagnostic[];
  /** Warnings, which do not prevent rendering. */
  warnings: Diagnostic[];
}
