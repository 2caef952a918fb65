import { combineErrors } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type RegistryReference, formatReference, parseReference } from '../core/reference.js';
import type { SourceSession } from '../source/session.js';
import type { OpenPgpKeyring } from '../trust/openpgp-keyring.js';
import { verifySignedMessage } from '../trust/openpgp.js';
import { checkReleaseSignature } from '../trust/simple-signing.js';
import type { DigestReference } from './digest-reference.js';
import type { ReleaseType } from './select-releases.js';
import { readUrl } from './update-service.js';

/** Name of a release image in its signature. */
type SignedName = RegistryReference & { tag: string };

/** A verified signature. */
export interface ReleaseSignature {
  name: SignedName;
  bytes: Buffer;
}

/**
 * URLs of published release signatures of all versions: the path of the store of `ocp` has the name of the first major
 * version for the next ones too. (Source: openshift/cluster-update-keys.)
 */
export const signatureStores: Readonly<Record<ReleaseType, string>> = {
  ocp: 'https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release/',
  okd: 'https://storage.googleapis.com/openshift-ci-release/releases/signatures/openshift/release/',
};

/** Maximum bytes of a signature, and signatures per image. */
const maxSignatureBytes = 64 * 1024;
const maxSignatures = 10;

interface VerifyOptions {
  keyring: OpenPgpKeyring;
  now: Date;
  /** Version of the image in the update graph; undefined without one. */
  version: string | undefined;
}

/**
 * Verifies a signature of a release image: key, digest, and the signed version. Throws OpmateError that starts with
 * the image reference. (Source: containers-signature(5).)
 */
export function verifyReleaseSignature(
  bytes: Buffer,
  image: DigestReference,
  { keyring, now, version }: VerifyOptions,
): ReleaseSignature {
  const subject = `${formatReference(image)}: release signature`;
  const { content } = verifySignedMessage(bytes, keyring, { subject, now });
  const { reference } = checkReleaseSignature(content, image.digest, subject);
  const name = parseReference(reference);
  const { tag } = name;
  if (name.transport !== 'docker' || tag === undefined)
    throw new OpmateError('INVALID', `signed as ${quoteGo(reference)}, expected an image with a tag`, {
      subject,
    });
  if (version !== undefined && tag !== version && !tag.startsWith(`${version}-`)) {
    const problem = `signed as ${quoteGo(reference)}, expected version ${version} of the update graph`;
    throw new OpmateError('INVALID', problem, {
      subject,
      hint: 'check the source of the update graph: it cannot be trusted',
    });
  }
  return { name: { ...name, tag }, bytes };
}

/**
 * Reads the signatures of a release image from a store until one is valid. Throws OpmateError NOT_FOUND without
 * signatures, otherwise with the problems of all. (Source: store layout of containers/image, signature-N.)
 */
export async function fetchReleaseSignature(
  store: URL,
  image: DigestReference,
  options: VerifyOptions & { session: SourceSession },
): Promise<ReleaseSignature> {
  const label = `${formatReference(image)}: release signature`;
  const directory = image.digest.replace(':', '=');
  const faults: OpmateError[] = [];
  for (let i = 1; i <= maxSignatures; i++) {
    const url = new URL(`${directory}/signature-${i}`, store);
    try {
      const bytes = await readUrl(url, maxSignatureBytes, label, options.session);
      return verifyReleaseSignature(bytes, image, options);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      if (error.code !== 'NOT_FOUND') {
        faults.push(error);
        if (error.code === 'NETWORK' || error.code === 'AUTH') break;
        continue;
      }
      if (faults.length > 0) break;
      throw new OpmateError('NOT_FOUND', `no release signature in ${store.href}`, {
        subject: formatReference(image),
        hint: 'set OCP_SIGNATURE_URL to another store, or add options.ignoreReleaseSignature for a build without signature',
        cause: error,
      });
    }
  }
  throw combineErrors(faults);
}
