// An ES module of its own, since a bundle gives CommonJS modules that are imported late no named exports.
export { bundleFromJSON } from '@sigstore/bundle';
export { X509Certificate } from '@sigstore/core';
export { TrustedRoot } from '@sigstore/protobuf-specs';
export { Verifier, toSignedEntity, toTrustMaterial } from '@sigstore/verify';
