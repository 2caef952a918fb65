import type { KeyObject } from 'node:crypto';

/** A cosign signature as stored in its image. */
export type SigstoreSignature =
  | {
      kind: 'simple';
      /** Simple signing document. */
      payload: Buffer;
      /** Signature in base64. */
      signature: string;
      /** PEM of the signing certificate; undefined for a long-lived key. */
      certificate?: string | undefined;
      /** PEM of the parent certificates. */
      chain?: string | undefined;
      /** JSON of its Rekor entry with the signed entry timestamp. */
      logEntry?: string | undefined;
    }
  | {
      kind: 'bundle';
      /** Sigstore bundle in JSON. */
      bundle: Buffer;
    };

/** Required signer: the owner of one of several keys, or of a certificate for an identity. */
export type SigstoreSigner =
  | {
      kind: 'key';
      keys: readonly KeyObject[];
      /** Public keys of transparency logs, of which one must have recorded the signature; none: not required. */
      rekorKeys: readonly KeyObject[];
    }
  | CertificateSigner;

/** A signer with certificates of Fulcio. */
export interface CertificateSigner {
  kind: 'certificate';
  trust:
    | { kind: 'trusted-root'; json: string }
    | { kind: 'authorities'; certificates: string; rekorKeys: readonly KeyObject[] };
  /** Subject alternative name: an email address or URI; undefined: any. */
  identity: string | RegExp | undefined;
  oidcIssuer: string | RegExp | undefined;
}
