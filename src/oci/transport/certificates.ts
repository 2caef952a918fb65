import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { getMessage, OpmateError, systemCode } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { readNamedFile } from '../../files/read-file.js';
import type { Environment } from '../../files/run-program.js';

export interface CertificateOptions {
  environment: Environment;
  homeDirectory: string;
  /** Directory of system-wide configuration, such as `/etc`. */
  systemDirectory: string;
  /** `--ca-file` */
  caFile?: string | undefined;
  /** `--cert-dir`: files for all registries, or a directory `host:port` for each. */
  certDir?: string | undefined;
  logger?: Logger | undefined;
}

/** Options of `tls.createSecureContext` for a host. */
export interface TlsFiles {
  ca: string[];
  cert?: string[];
  key?: string[];
  /** Files of the authorities, in order. */
  trustPaths: string[];
}

/** Finds the certificates for a host. Client certificates for all hosts are used only for hosts that the user named. */
export type CertificateStore = (host: string, isNamed: boolean) => Promise<TlsFiles>;

/** Bundles of authorities of distributions. (Source: Go's crypto/x509, root_linux.go.) */
const systemBundles = [
  'ssl/certs/ca-certificates.crt',
  'pki/tls/certs/ca-bundle.crt',
  'ssl/ca-bundle.pem',
  'pki/tls/cacert.pem',
  'pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  'ssl/cert.pem',
];

/**
 * Returns the store of certificates for hosts (`host:port` as in the reference). Authorities: SSL_CERT_FILE, else the
 * bundle of the system, else that of Node.js; and NODE_EXTRA_CA_CERTS, `--ca-file`, and `*.crt` of the host in certs.d.
 * Client certificates: `*.cert` with `*.key` there. (Source: containers-certs.d(5).) Throws OpmateError naming an
 * unreadable or invalid file.
 */
export function createCertificateStore(options: CertificateOptions): CertificateStore {
  const certificates = new HostCertificates(options);
  return (host, isNamed) => certificates.find(host, isNamed);
}

/** Certificates of hosts, each read once. */
class HostCertificates {
  readonly #options: CertificateOptions;
  readonly #logger: Logger;
  readonly #hosts = new Map<string, Promise<TlsFiles>>();
  #common: Promise<TlsFiles> | undefined;

  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
  }

  find(host: string, isNamed: boolean): Promise<TlsFiles> {
    return getOrAdd(this.#hosts, `${host} ${isNamed}`, () => this.#readHost(host, isNamed));
  }

  async #readCommon(): Promise<TlsFiles> {
    const named = await this.#readVariable('SSL_CERT_FILE');
    const files: TlsFiles[] = [named ?? (await readSystemBundle(this.#options.systemDirectory))];
    const extra = await this.#readVariable('NODE_EXTRA_CA_CERTS');
    if (extra !== undefined) files.push(extra);
    if (this.#options.caFile !== undefined)
      files.push({ ca: [await readAuthorities(this.#options.caFile)], trustPaths: [this.#options.caFile] });
    return { ca: files.flatMap(({ ca }) => ca), trustPaths: files.flatMap(({ trustPaths }) => trustPaths) };
  }

  /** Reads the file that a variable names; undefined, with a warning, if it is unusable. */
  async #readVariable(name: string): Promise<TlsFiles | undefined> {
    const path = this.#options.environment[name];
    if (!path) return undefined;
    try {
      return { ca: [await readAuthorities(path)], trustPaths: [path] };
    } catch (error) {
      this.#logger.log('warn', `${name}: ${getMessage(error)}`);
      return undefined;
    }
  }

  async #readHost(host: string, isNamed: boolean): Promise<TlsFiles> {
    this.#common ??= this.#readCommon();
    const { ca, trustPaths } = await this.#common;
    const hostFiles = await hostDirectory(this.#options, host);
    if (!hostFiles)
      return { ca, trustPaths: [...trustPaths, ...certificateDirectories(this.#options, host)] };
    const { directory } = hostFiles;
    const isForAll = directory === this.#options.certDir;
    const names =
      isForAll && !isNamed ? hostFiles.names.filter((name) => name.endsWith('.crt')) : hostFiles.names;
    const files: TlsFiles = { ca: [...ca], trustPaths: [...trustPaths, directory] };
    for (const name of names.filter((name) => name.endsWith('.crt'))) {
      files.ca.push(await readAuthorities(join(directory, name)));
    }
    const requireBeside = (name: string, other: string, what: string): void => {
      if (names.includes(other)) return;
      const subject = join(directory, name);
      throw new OpmateError('NOT_FOUND', `the ${what} file ${other} beside it is missing`, { subject });
    };
    for (const name of names.filter((name) => name.endsWith('.cert'))) {
      const key = name.replace(/\.cert$/, '.key');
      requireBeside(name, key, 'key');
      const pair = await readPair(join(directory, name), join(directory, key));
      (files.cert ??= []).push(pair.cert);
      (files.key ??= []).push(pair.key);
    }
    for (const key of names.filter((name) => name.endsWith('.key')))
      requireBeside(key, key.replace(/\.key$/, '.cert'), 'certificate');
    return files;
  }
}

function certificateDirectories(options: CertificateOptions, host: string): string[] {
  const roots = [
    join(options.homeDirectory, '.config/containers/certs.d'),
    join(options.systemDirectory, 'containers/certs.d'),
    join(options.systemDirectory, 'docker/certs.d'),
  ];
  const own = options.certDir === undefined ? [] : [join(options.certDir, host), options.certDir];
  return [...own, ...roots.map((root) => join(root, host))];
}

/** Returns the first existing directory of the host; `--cert-dir` itself must have certificates. */
async function hostDirectory(
  options: CertificateOptions,
  host: string,
): Promise<{ directory: string; names: string[] } | undefined> {
  if (options.certDir !== undefined) await list(options.certDir, true);
  for (const directory of certificateDirectories(options, host)) {
    const names = await list(directory, false);
    if (names && (directory !== options.certDir || names.some((name) => /\.(crt|cert|key)$/.test(name)))) {
      return { directory, names: names.sort() };
    }
  }
  return undefined;
}

async function list(directory: string, required: boolean): Promise<string[] | undefined> {
  try {
    return await readdir(directory);
  } catch (error) {
    const missing = ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    if (missing && !required) return undefined;
    throw unreadable(directory, error);
  }
}

/** Maximum size of a PEM file, in bytes; bundles of systems have 250 KB. */
export const maxPemBytes = 16 * 1024 * 1024;

async function readSystemBundle(systemDirectory: string): Promise<TlsFiles> {
  for (const bundle of systemBundles) {
    const path = join(systemDirectory, bundle);
    try {
      return { ca: [String(await readNamedFile(path, maxPemBytes))], trustPaths: [path] };
    } catch {
      // Each distribution has one of these.
    }
  }
  return { ca: [...rootCertificates], trustPaths: ['the built-in list'] };
}

/** Reads a PEM file of one or more certificates. */
async function readAuthorities(path: string): Promise<string> {
  const text = await read(path);
  checkCertificate(text, path);
  return text;
}

/** Throws OpmateError INVALID unless a file begins with a certificate in PEM. */
export function checkCertificate(pem: string | Buffer, file: string): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new OpmateError('INVALID', 'not a certificate in PEM', { about: file, cause });
  }
}

/** Throws OpmateError INVALID unless the key is that of the certificate. */
export function checkKeyPair(
  { cert, key }: { cert: string | Buffer; key: string | Buffer },
  files: { cert: string; key: string },
): void {
  checkCertificate(cert, files.cert);
  const details = { about: files.key };
  let belongs: boolean;
  try {
    belongs = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (cause) {
    throw new OpmateError('INVALID', 'not a private key in PEM without passphrase', { ...details, cause });
  }
  if (belongs) return;
  throw new OpmateError('INVALID', `not the key of the certificate ${files.cert}`, details);
}

/** Reads a client certificate and its matching key. */
async function readPair(certPath: string, keyPath: string): Promise<{ cert: string; key: string }> {
  const pair = { cert: await readAuthorities(certPath), key: await read(keyPath) };
  checkKeyPair(pair, { cert: certPath, key: keyPath });
  return pair;
}

async function read(path: string): Promise<string> {
  try {
    return String(await readNamedFile(path, maxPemBytes));
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): OpmateError {
  const missing = systemCode(cause) === 'ENOENT';
  const text = missing ? 'not found' : `cannot be read (${systemCode(cause) ?? 'unknown'})`;
  return new OpmateError(missing ? 'NOT_FOUND' : 'IO', text, { about: path, cause });
}
