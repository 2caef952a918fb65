import { type KeyObject, createHash, createPublicKey } from 'node:crypto';
import { OpmateError, getMessage } from '../core/errors.js';
import { decodeUtf8, parseGoJson } from '../document/go-json.js';
import { openJsonFile, openValue, readDocument } from '../document/document.js';
import {
  TrustedRoot,
  Verifier,
  X509Certificate,
  bundleFromJSON,
  toSignedEntity,
  toTrustMaterial,
} from './sigstore-packages.js';
import { warnOfUnknown } from '../document/field.js';
import type { CertificateSigner, SigstoreSignature, SigstoreSigner } from './sigstore-types.js';

const trustedRootType =
  /^application\/vnd\.dev\.sigstore\.trustedroot(?:\+json;version=0\.\d+|\.v0\.\d+\+json)$/;
const logFields = ['baseUrl', 'hashAlgorithm', 'publicKey', 'logId', 'checkpointKeyId', 'operator'] as const;
const logKeyFields = ['rawBytes', 'keyDetails', 'validFor'] as const;
const authorityFields = ['subject', 'uri', 'certChain', 'validFor', 'operator'] as const;

const trustedRootHint = 'specify a trusted_root.json of Sigstore';

type SimpleSignature = Extract<SigstoreSignature, { kind: 'simple' }>;

type Bundle = ReturnType<typeof bundleFromJSON>;
type Signer = ReturnType<Verifier['verify']>;
type TrustMaterial = ReturnType<typeof toTrustMaterial>;

const always = { start: new Date(0), end: new Date(8.64e15) };
const codeSigning = '1.3.6.1.5.5.7.3.3';
const maxChainLength = 8;

/** Verifies a simple signing payload by certificate, or by key with a log entry. Returns the signer's name. */
export async function verifyLoggedPayload(
  signature: SimpleSignature,
  signer: SigstoreSigner,
): Promise<string> {
  if (signer.kind === 'certificate' && signature.certificate === undefined) {
    throw new OpmateError('INVALID', 'signed with a key, not with a certificate');
  }
  if (signature.logEntry === undefined) {
    throw new OpmateError('INVALID', 'no transparency log entry');
  }
  const bundle = toBundle(signature, signature.logEntry);
  return verifySigner(bundle, signer, signature.payload, signature.chain);
}

/** Verifies a Sigstore bundle with a signed statement. Returns the statement and the signer's name. */
export async function verifyBundle(
  bytes: Buffer,
  signer: SigstoreSigner,
): Promise<{ statement: Buffer; signer: string }> {
  const bundle = readLibrary('bundle', () => bundleFromJSON(JSON.parse(decodeUtf8(bytes))));
  if (bundle.content.$case !== 'dsseEnvelope') {
    throw new OpmateError('INVALID', 'no signed statement in the bundle');
  }
  const { payload, payloadType } = bundle.content.dsseEnvelope;
  if (payloadType !== 'application/vnd.in-toto+json') {
    throw new OpmateError('INVALID', `bundle with a payload of type "${payloadType.slice(0, 100)}"`);
  }
  return { statement: payload, signer: verifySigner(bundle, signer) };
}

/** Returns the name of the signer. */
function verifySigner(bundle: Bundle, signer: SigstoreSigner, payload?: Buffer, chain?: string): string {
  try {
    if (signer.kind === 'key') {
      const isLogged = signer.rekorKeys.length > 0;
      const own = isLogged ? bundle : withoutLogEntries(bundle);
      verifyByKeys(own, signer.keys, signer.rekorKeys, isLogged ? 1 : 0, payload);
      return 'key';
    }
    if (bundle.verificationMaterial.content.$case === 'publicKey') {
      throw new OpmateError('INVALID', 'signed with a key, not with a certificate');
    }
    const match =
      signer.trust.kind === 'trusted-root'
        ? verifyByTrustedRoot(bundle, signer.trust.json, payload)
        : verifyByAuthorities(bundle, signer.trust, payload, chain);
    return requireIdentity(match, signer);
  } catch (error) {
    // The library throws many kinds of errors for damaged certificates.
    throw error instanceof OpmateError ? error : refused(error);
  }
}

/** Removes log entries, which the library checks if present; without log keys they are meaningless. */
function withoutLogEntries(bundle: Bundle): Bundle {
  return {
    ...bundle,
    verificationMaterial: {
      ...bundle.verificationMaterial,
      tlogEntries: [],
      timestampVerificationData: undefined,
    },
  };
}

function verifyByKeys(
  bundle: Bundle,
  keys: readonly KeyObject[],
  rekorKeys: readonly KeyObject[],
  threshold: 0 | 1,
  payload: Buffer | undefined,
): Signer {
  const options = { ctlogThreshold: 0, tlogThreshold: threshold, timestampThreshold: threshold };
  const failures: unknown[] = [];
  for (const publicKey of keys) {
    const material: TrustMaterial = {
      certificateAuthorities: [],
      timestampAuthorities: [],
      ctlogs: [],
      tlogs: rekorKeys.map(getLog),
      publicKey: () => ({ publicKey, validFor: () => true }),
    };
    try {
      const entity = toSignedEntity(bundle, payload);
      return new Verifier(material, options).verify({ ...entity, key: { $case: 'public-key', hint: '' } });
    } catch (error) {
      failures.push(error);
    }
  }
  throw failures[0];
}

/** Checks a Sigstore trusted_root.json. Throws OpmateError SYNTAX, or INVALID for other JSON. */
export function checkTrustedRoot(json: string, file: string): void {
  checkRootFields(json, file);
  readTrustedRoot(json, file);
}

function readTrustedRoot(json: string, subject: string): TrustMaterial {
  const value = openJsonFile(json, subject).value;
  try {
    return toTrustMaterial(TrustedRoot.fromJSON(value));
  } catch (cause) {
    const details = { subject, cause, hint: trustedRootHint };
    throw new OpmateError('INVALID', 'not a trusted_root.json of Sigstore', details);
  }
}

function verifyByTrustedRoot(bundle: Bundle, json: string, payload: Buffer | undefined): Signer {
  const root = readTrustedRoot(json, 'trusted root');
  const options = {
    ctlogThreshold: root.ctlogs.length > 0 ? 1 : 0,
    tlogThreshold: root.tlogs.length > 0 ? 1 : 0,
    timestampThreshold: 1,
  };
  return new Verifier(root, options).verify(toSignedEntity(bundle, payload));
}

/**
 * Verifies by the certificate authorities and log keys of a policy.json alone: ignores certificate transparency and
 * takes intermediates from the signature, as containers/image does.
 */
function verifyByAuthorities(
  bundle: Bundle,
  { certificates, rekorKeys }: Extract<CertificateSigner['trust'], { kind: 'authorities' }>,
  payload: Buffer | undefined,
  chain: string | undefined,
): Signer {
  const { content, tlogEntries } = bundle.verificationMaterial;
  const listed =
    content.$case === 'x509CertificateChain'
      ? content.x509CertificateChain.certificates
      : content.$case === 'certificate'
        ? [content.certificate]
        : [];
  const leaf = readLibrary('certificate', () =>
    X509Certificate.parse(Buffer.from(listed[0]?.rawBytes ?? [])),
  );
  // The time of a single entry is the one signed by its log.
  if (tlogEntries.length !== 1) throw new OpmateError('INVALID', 'expected one transparency log entry');
  const publicKey = createPublicKey({ key: leaf.publicKey, format: 'der', type: 'spki' });
  verifyByKeys(bundle, [publicKey], rekorKeys, 1, payload);
  const time = new Date(Number(tlogEntries[0]?.integratedTime ?? 0) * 1000);
  const roots = readCertificates(certificates, 'certificate authority');
  const intermediates = readCertificates(chain ?? '', 'certificate chain').slice(0, maxChainLength);
  if (!leaf.validForDate(time)) {
    throw new OpmateError('INVALID', 'certificate not valid when the signature was made');
  }
  if (!isIssuedByRoot(leaf, intermediates, roots, time, 0)) {
    throw new OpmateError('INVALID', 'certificate not issued by the trusted certificate authority');
  }
  const usage = leaf.extension('2.5.29.37')?.valueObj.subs[0]?.subs ?? [];
  if (!usage.some((obj) => obj.toOID() === codeSigning)) {
    throw new OpmateError('INVALID', 'certificate not for code signing');
  }
  const { extensions } = getIdentity(leaf);
  return { key: publicKey, identity: { subjectAlternativeName: leaf.subjectAltName ?? '', extensions } };
}

function isIssuedByRoot(
  certificate: X509Certificate,
  intermediates: readonly X509Certificate[],
  roots: readonly X509Certificate[],
  time: Date,
  depth: number,
): boolean {
  if (depth > maxChainLength) return false;
  const issues = (issuer: X509Certificate): boolean =>
    issuer.isCA &&
    issuer.subject.equals(certificate.issuer) &&
    issuer.validForDate(time) &&
    allowsDepth(issuer, depth) &&
    certificate.verify(issuer);
  if (roots.some(issues)) return true;
  return intermediates
    .filter(issues)
    .some((issuer) => isIssuedByRoot(issuer, intermediates, roots, time, depth + 1));
}

function allowsDepth(issuer: X509Certificate, depth: number): boolean {
  const limit = issuer.extBasicConstraints?.pathLenConstraint;
  return limit === undefined || limit >= BigInt(depth);
}

function getIdentity(leaf: X509Certificate): { extensions: { issuer?: string } } {
  const second = leaf.extension('1.3.6.1.4.1.57264.1.8')?.valueObj.subs[0]?.value;
  const first = leaf.extension('1.3.6.1.4.1.57264.1.1')?.value;
  const issuer = (second ?? first)?.toString('latin1');
  if (first !== undefined && first.toString('latin1') !== issuer) {
    throw new OpmateError('INVALID', 'two different identity issuers in the certificate');
  }
  return { extensions: issuer === undefined ? {} : { issuer } };
}

function requireIdentity({ identity }: Signer, wanted: CertificateSigner): string {
  const name = identity?.subjectAlternativeName ?? '';
  const issuer = identity?.extensions?.issuer ?? '';
  const problems = [
    ...(matches(wanted.identity, name) ? [] : [`signed by "${name}", expected ${show(wanted.identity)}`]),
    ...(matches(wanted.oidcIssuer, issuer)
      ? []
      : [`identity issued by "${issuer}", expected ${show(wanted.oidcIssuer)}`]),
  ];
  if (problems.length > 0) throw new OpmateError('INVALID', problems.join('; '));
  return name;
}

function matches(wanted: string | RegExp | undefined, value: string): boolean {
  if (wanted === undefined) return true;
  return typeof wanted === 'string' ? wanted === value : wanted.test(value);
}

function show(wanted: string | RegExp | undefined): string {
  return wanted instanceof RegExp ? `a match of ${wanted.source}` : `"${wanted ?? ''}"`;
}

function getLog(publicKey: KeyObject): TrustMaterial['tlogs'][number] {
  const logID = createHash('sha256')
    .update(publicKey.export({ format: 'der', type: 'spki' }))
    .digest();
  return { logID, publicKey, baseURL: '', validFor: always };
}

/** Converts the annotations of a cosign signature into a bundle. */
function toBundle({ payload, signature, certificate }: SimpleSignature, logEntry: string): Bundle {
  const root = openLogEntry(logEntry);
  const entry = root.field('Payload');
  const body = entry.field('body').text(1024 * 1024);
  const recorded = openLogEntry(Buffer.from(body, 'base64').toString());
  const base64 = (bytes: Buffer): string => bytes.toString('base64');
  const leaf = certificate === undefined ? undefined : getDer(certificate, 'certificate')[0];
  const json = {
    mediaType: 'application/vnd.dev.sigstore.bundle+json;version=0.1',
    verificationMaterial: {
      ...(leaf === undefined
        ? { publicKey: { hint: '' } }
        : { x509CertificateChain: { certificates: [{ rawBytes: base64(leaf) }] } }),
      tlogEntries: [
        {
          logIndex: String(entry.field('logIndex').integer(0, Number.MAX_SAFE_INTEGER)),
          logId: { keyId: base64(Buffer.from(entry.field('logID').text(), 'hex')) },
          kindVersion: {
            kind: recorded.field('kind').text(),
            version: recorded.field('apiVersion').text(),
          },
          integratedTime: String(entry.field('integratedTime').integer(0, Number.MAX_SAFE_INTEGER)),
          inclusionPromise: { signedEntryTimestamp: root.field('SignedEntryTimestamp').text() },
          canonicalizedBody: body,
        },
      ],
    },
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: createHash('sha256').update(payload).digest('base64') },
      signature,
    },
  };
  return readLibrary('log entry', () => bundleFromJSON(json));
}

function openLogEntry(text: string) {
  const name = 'log entry';
  return openValue(
    readLibrary(name, () => parseGoJson(text)),
    { name, kind: 'reference' },
  );
}

/** Returns the certificates of PEM text as DER. */
function getDer(pem: string, what: string): Buffer[] {
  const blocks = [...pem.matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g)];
  if (blocks.length === 0 && pem.trim() !== '') throw new OpmateError('SYNTAX', `damaged ${what}`);
  return blocks.map(([, base64 = '']) => Buffer.from(base64, 'base64'));
}

/** Reads certificates in PEM. Throws OpmateError SYNTAX. */
function readCertificates(pem: string, what: string): X509Certificate[] {
  return getDer(pem, what).map((der) => readLibrary(what, () => X509Certificate.parse(Buffer.from(der))));
}

function readLibrary<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new OpmateError('SYNTAX', `damaged ${what}`, { cause });
  }
}

function refused(error: unknown): OpmateError {
  const causes = [error, (error as { cause?: unknown }).cause].filter((item) => item instanceof Error);
  const text = causes.map(getMessage).join(': ');
  return new OpmateError('INVALID', text.charAt(0).toLowerCase() + text.slice(1), { cause: error });
}

/**
 * Checks the fields of a Sigstore trusted_root.json: the library ignores misspelled ones, and with them logs and times
 * of validity. Unknown fields of later versions are accepted. Throws OpmateError SYNTAX, or DiagnosticsError.
 */
function checkRootFields(json: string, file: string): void {
  const options = { maxLength: Infinity, noun: 'trusted root', isJson: true };
  const { root, diagnostics } = readDocument(json, file, options);
  const lists = ['tlogs', 'certificateAuthorities', 'ctlogs', 'timestampAuthorities'] as const;
  const fields = root.object(['mediaType', ...lists], warnOfUnknown);
  const authorities = fields?.certificateAuthorities.list() ?? [];
  if (fields?.certificateAuthorities.isPresent && authorities.length === 0) {
    fields.certificateAuthorities.fail('no certificate authorities', { hint: trustedRootHint });
  }
  fields?.mediaType.matching((text) => trustedRootType.test(text), 'the media type of a trusted_root.json');
  for (const log of [fields?.tlogs, fields?.ctlogs].flatMap((list) => list?.optionalList() ?? [])) {
    const key = log.object(logFields, warnOfUnknown)?.publicKey.object(logKeyFields, warnOfUnknown);
    key?.validFor.optionalObject(['start', 'end'], warnOfUnknown);
  }
  for (const authority of [...authorities, ...(fields?.timestampAuthorities.optionalList() ?? [])]) {
    authority
      .object(authorityFields, warnOfUnknown)
      ?.validFor.optionalObject(['start', 'end'], warnOfUnknown);
  }
  diagnostics.throwIfErrors();
}
