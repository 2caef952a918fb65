import type { KeyObject } from 'node:crypto';

/** A cosign signature as its image carries it. */
export type SigstoreSignature =
  | {
      kind: 'simple';
      /** The simple signing document. */
      payload: Buffer;
      /** Base64. */
      signature: string;
      /** PEM of the certificate whose key signed; undefined where a long-lived key did. */
      certificate?: string | undefined;
      /** PEM of the certificates above it. */
      chain?: string | undefined;
      /** JSON of its Rekor entry with the signed entry timestamp. */
      logEntry?: string | undefined;
    }
  | {
      kind: 'bundle';
      /** Sigstore bundle, JSON. */
      bundle: Buffer;
    };

/** Who must have signed: the owner of one of several keys, or of a certificate for an identity. */
export type SigstoreSigner =
  | {
      kind: 'key';
      keys: readonly KeyObject[];
      /** Public keys of transparency logs, one of which must have recorded the signature; none: not required. */
      rekorKeys: readonly KeyObject[];
    }
  | CertificateSigner;

/** A signer that certificates of Fulcio are issued to. */
export interface CertificateSigner {
  kind: 'certificate';
  trust:
    | { kind: 'trusted-root'; json: string }
    | { kind: 'authorities'; certificates: string; rekorKeys: readonly KeyObject[] };
  /** Subject alternative name: an email address or URI. Undefined: any. */
  identity: string | RegExp | undefined;
  oidcIssuer: string | RegExp | undefined;
}
