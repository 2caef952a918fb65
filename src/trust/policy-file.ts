import { type KeyObject } from 'node:crypto';
import { OpmateError } from '../core/errors.js';
import { readDocument } from '../document/document.js';
import type { Field } from '../document/field.js';
import { parseKeyring } from './openpgp-keyring.js';
import { maxScopes, type PolicyRequirement, type SignaturePolicy } from './policy.js';
import type { SignedIdentity } from './signed-identity.js';
import { parseVerificationKey } from './signing-key.js';
import type { SigstoreSigner } from './sigstore-types.js';

const maxPolicyLength = 4 * 1024 * 1024;
const maxRequirements = 100;
const maxKeys = 100;

/** Reads a file named in a policy by absolute path. Throws OpmateError. */
type ReadPolicyFile = (path: string) => Promise<Buffer>;

/**
 * Reads a policy.json of containers (containers-policy.json(5)), and its keys via `readFile`.
 *
 * Throws OpmateError with all problems: unknown types and fields, unreadable keys, keys of the wrong kind.
 */
export async function parsePolicyFile(
  text: string,
  file: string,
  readFile: ReadPolicyFile,
): Promise<SignaturePolicy> {
  const options = { maxLength: maxPolicyLength, noun: 'policy', isJson: true };
  const { root, diagnostics } = readDocument(text, file, options);
  const requirements = new RequirementReader(readFile);
  if (!root.isPresent) root.fail('expected default: and its requirements');
  const fields = root.isPresent ? root.object(['default', 'transports']) : undefined;
  const byDefault = fields === undefined ? [] : await requirements.readAll(fields.default);
  const transports = new Map<string, Map<string, PolicyRequirement[]>>();
  for (const [transport, field] of fields?.transports.isPresent
    ? (fields.transports.entries(100) ?? [])
    : []) {
    const scopes = new Map<string, PolicyRequirement[]>();
    for (const [scope, rule] of field.entries(maxScopes) ?? [])
      scopes.set(scope, await requirements.readAll(rule));
    transports.set(transport, scopes);
  }
  diagnostics.throwIfErrors();
  return { name: file, default: byDefault, transports };
}

const requirementTypes = ['insecureAcceptAnything', 'reject', 'signedBy', 'sigstoreSigned'] as const;

const keyFields = ['keyPath', 'keyPaths', 'keyData', 'keyDatas'] as const;
const rekorKeyFields = [
  'rekorPublicKeyPath',
  'rekorPublicKeyPaths',
  'rekorPublicKeyData',
  'rekorPublicKeyDatas',
] as const;

/** Reads the requirements in a field, with the files that they name. */
class RequirementReader {
  readonly #readFile: ReadPolicyFile;

  constructor(readFile: ReadPolicyFile) {
    this.#readFile = readFile;
  }

  async readAll(field: Field): Promise<PolicyRequirement[]> {
    const items = field.list(maxRequirements) ?? [];
    if (field.isPresent && items.length === 0 && Array.isArray(field.value)) {
      field.fail('expected at least one requirement, got none');
    }
    const read: PolicyRequirement[] = [];
    for (const item of items) {
      const requirement = await this.#readRequirement(item);
      if (requirement !== undefined) read.push(requirement);
    }
    return read;
  }

  async #readRequirement(field: Field): Promise<PolicyRequirement | undefined> {
    if (field.jsonObject() === undefined) return undefined;
    const type = field.field('type').choice(requirementTypes);
    if (type === 'signedBy') return this.#readSignedBy(field);
    if (type === 'sigstoreSigned') return this.#readSigstoreSigned(field);
    if (type === undefined || field.object(['type']) === undefined) return undefined;
    return { type };
  }

  async #readSignedBy(field: Field): Promise<PolicyRequirement | undefined> {
    const fields = field.object(['type', 'keyType', 'keyPath', 'keyPaths', 'keyData', 'signedIdentity']);
    if (fields === undefined) return undefined;
    fields.keyType.constant('GPGKeys');
    const keyrings = await this.#readKeys(field, ['keyPath', 'keyPaths', 'keyData'], parseKeyring);
    return { type: 'signedBy', keyrings, identity: readIdentity(fields.signedIdentity) };
  }

  async #readSigstoreSigned(field: Field): Promise<PolicyRequirement | undefined> {
    const fields = field.object(['type', ...keyFields, ...rekorKeyFields, 'fulcio', 'signedIdentity']);
    if (fields === undefined) return undefined;
    const rekorKeys = await this.#readKeys(field, rekorKeyFields, parseVerificationKey, false);
    let signer: SigstoreSigner | undefined;
    if (fields.fulcio.isPresent) {
      field.exclusive(['fulcio', ...keyFields]);
      if (!rekorKeyFields.some((name) => field.field(name).isPresent)) fields.rekorPublicKeyPath.missing();
      signer = await this.#readFulcio(fields.fulcio, rekorKeys);
    } else {
      signer = { kind: 'key', keys: await this.#readKeys(field, keyFields, parseVerificationKey), rekorKeys };
    }
    return signer && { type: 'sigstoreSigned', signer, identity: readIdentity(fields.signedIdentity) };
  }

  async #readFulcio(field: Field, rekorKeys: readonly KeyObject[]): Promise<SigstoreSigner | undefined> {
    const fields = field.object(['caPath', 'caData', 'oidcIssuer', 'subjectEmail']);
    if (fields === undefined) return undefined;
    const certificates = await this.#readKeys(field, ['caPath', 'caData'], (bytes) =>
      bytes.toString('latin1'),
    );
    const trust = { kind: 'authorities' as const, certificates: certificates.join('\n'), rekorKeys };
    const [oidcIssuer, identity] = [fields.oidcIssuer.text(), fields.subjectEmail.text()];
    return { kind: 'certificate', trust, oidcIssuer, identity };
  }

  /** Reads keys from whichever of `names` is set: a path, paths, base64 data or a list of them. */
  async #readKeys<T>(
    field: Field,
    names: readonly string[],
    parse: (bytes: Buffer, subject: string) => T,
    isRequired = true,
  ): Promise<T[]> {
    const name = names.find((key) => field.field(key).isPresent);
    if (name === undefined) {
      if (isRequired) field.field(names[0] ?? '').missing();
      return [];
    }
    field.exclusive(names);
    const values = /s$/.test(name) ? field.field(name).list(maxKeys) : [field.field(name)];
    if (values?.length === 0) field.field(name).fail('expected at least one key, got none');
    const read: T[] = [];
    for (const value of values ?? []) {
      const isData = name.includes('Data');
      const text = value.text(isData ? 1024 * 1024 : undefined);
      if (text === undefined) continue;
      try {
        const bytes = isData ? readBase64(text) : await this.#readFile(text);
        read.push(parse(bytes, isData ? name : text));
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        // The field names the data already.
        value.fail(isData ? error.problem : error.message, { hint: error.hint });
      }
    }
    return read;
  }
}

/** Decodes base64 of a policy. Throws OpmateError SYNTAX. */
export function readBase64(text: string): Buffer {
  if (/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)) return Buffer.from(text, 'base64');
  throw new OpmateError('SYNTAX', 'invalid base64');
}

const identityTypes = [
  'matchExact',
  'matchRepoDigestOrExact',
  'matchRepository',
  'exactReference',
  'exactRepository',
  'remapIdentity',
] as const;

function readIdentity(field: Field): SignedIdentity {
  const otherwise: SignedIdentity = { type: 'matchRepoDigestOrExact' };
  if (!field.isPresent || field.jsonObject() === undefined) return otherwise;
  const type = field.field('type').choice(identityTypes);
  const keys = {
    exactReference: ['dockerReference'],
    exactRepository: ['dockerRepository'],
    remapIdentity: ['prefix', 'signedPrefix'],
  };
  const own = type === undefined || !(type in keys) ? [] : keys[type as keyof typeof keys];
  if (type === undefined || field.object(['type', ...own]) === undefined) return otherwise;
  const text = (key: string): string => field.field(key).text() ?? '';
  switch (type) {
    case 'exactReference':
      return { type, dockerReference: text('dockerReference') };
    case 'exactRepository':
      return { type, dockerRepository: text('dockerRepository') };
    case 'remapIdentity':
      return { type, prefix: text('prefix'), signedPrefix: text('signedPrefix') };
    default:
      return { type };
  }
}
