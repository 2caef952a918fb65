// A separate ES module: in the published bundle, CommonJS modules imported lazily have no named exports.
export { bundleFromJSON } from '@sigstore/bundle';
export { X509Certificate } from '@sigstore/core';
export { TrustedRoot } from '@sigstore/protobuf-specs';
export { Verifier, toSignedEntity, toTrustMaterial } from '@sigstore/verify';
