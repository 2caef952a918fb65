import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { getMessage, OpmateError, systemCode } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { readNamedFile } from '../../files/read-file.js';
import type { Environment } from '../../files/run-program.js';

interface CertificateOptions {
  environment: Environment;
  homeDirectory: string;
  /** Directory of system-wide configuration, such as `/etc`. */
  systemDirectory: string;
  /** `--ca-file` */
  caFile?: string | undefined;
  /** `--cert-dir`: files for all registries, or a directory `host:port` for each. */
  certDir?: string | undefined;
  logger?: Logger;
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
  const logger = options.logger ?? silentLogger;
  let common: Promise<{ ca: string[]; trustPaths: string[] }> | undefined;
  const hosts = new Map<string, Promise<TlsFiles>>();

  async function readCommon(): Promise<{ ca: string[]; trustPaths: string[] }> {
    const { caFile, environment } = options;
    const base = await readBase(options, logger);
    const ca = [...base.ca];
    const trustPaths = [base.path];
    const extra = environment.NODE_EXTRA_CA_CERTS;
    const more = extra ? await readOptional('NODE_EXTRA_CA_CERTS', extra, logger) : undefined;
    if (extra && more !== undefined) {
      ca.push(more);
      trustPaths.push(extra);
    }
    if (caFile !== undefined) {
      ca.push(await readAuthorities(caFile));
      trustPaths.push(caFile);
    }
    return { ca, trustPaths };
  }

  async function readHost(host: string, isNamed: boolean): Promise<TlsFiles> {
    common ??= readCommon();
    const { ca, trustPaths } = await common;
    const hostFiles = await hostDirectory(options, host);
    if (!hostFiles) return { ca, trustPaths: [...trustPaths, ...certificateDirectories(options, host)] };
    const { directory } = hostFiles;
    const isForAll = directory === options.certDir;
    const names =
      isForAll && !isNamed ? hostFiles.names.filter((name) => name.endsWith('.crt')) : hostFiles.names;
    const files: TlsFiles = { ca: [...ca], trustPaths: [...trustPaths, directory] };
    for (const name of names.filter((name) => name.endsWith('.crt'))) {
      files.ca.push(await readAuthorities(join(directory, name)));
    }
    for (const name of names.filter((name) => name.endsWith('.cert'))) {
      const key = name.replace(/\.cert$/, '.key');
      if (!names.includes(key)) {
        throw new OpmateError('NOT_FOUND', `the key file ${key} beside it is missing`, {
          subject: join(directory, name),
        });
      }
      const pair = await readPair(join(directory, name), join(directory, key));
      (files.cert ??= []).push(pair.cert);
      (files.key ??= []).push(pair.key);
    }
    for (const key of names.filter((name) => name.endsWith('.key'))) {
      const name = key.replace(/\.key$/, '.cert');
      if (names.includes(name)) continue;
      throw new OpmateError('NOT_FOUND', `the certificate file ${name} beside it is missing`, {
        subject: join(directory, key),
      });
    }
    return files;
  }

  return (host, isNamed) => {
    const key = `${host} ${isNamed}`;
    const known = hosts.get(key) ?? readHost(host, isNamed);
    hosts.set(key, known);
    return known;
  };
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

async function readBase(
  options: CertificateOptions,
  logger: Logger,
): Promise<{ ca: string[]; path: string }> {
  const named = options.environment.SSL_CERT_FILE;
  const text = named ? await readOptional('SSL_CERT_FILE', named, logger) : undefined;
  if (named && text !== undefined) return { ca: [text], path: named };
  for (const bundle of systemBundles) {
    const path = join(options.systemDirectory, bundle);
    try {
      return { ca: [String(await readNamedFile(path, maxPemBytes))], path };
    } catch {
      // Each distribution has one of these.
    }
  }
  return { ca: [...rootCertificates], path: 'the built-in list' };
}

async function readOptional(variable: string, path: string, logger: Logger): Promise<string | undefined> {
  try {
    return await readAuthorities(path);
  } catch (error) {
    logger.log('warn', `${variable}: ${getMessage(error)}`);
    return undefined;
  }
}

/** Reads a PEM file of one or more certificates. */
async function readAuthorities(path: string): Promise<string> {
  const text = await read(path);
  try {
    new X509Certificate(text);
  } catch (error) {
    throw new OpmateError('INVALID', 'holds no PEM certificate', { subject: path, file: path, cause: error });
  }
  return text;
}

/** Reads a client certificate and its matching key. */
async function readPair(certPath: string, keyPath: string): Promise<{ cert: string; key: string }> {
  const cert = await readAuthorities(certPath);
  const key = await read(keyPath);
  let belongs: boolean;
  try {
    belongs = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (cause) {
    throw new OpmateError('INVALID', 'holds no PEM key without passphrase', {
      subject: keyPath,
      file: keyPath,
      cause,
    });
  }
  if (!belongs) {
    throw new OpmateError('INVALID', `not the key of the certificate ${certPath}`, {
      subject: keyPath,
      file: keyPath,
    });
  }
  return { cert, key };
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
  return new OpmateError(missing ? 'NOT_FOUND' : 'IO', text, { subject: path, file: path, cause });
}
