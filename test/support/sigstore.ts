/** Certificates, log entries and trusted roots of Sigstore, made with openssl and node:crypto. */
import { spawnSync } from 'node:child_process';
import { type KeyObject, createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface IssuedCertificate {
  key: KeyObject;
  pem: string;
}

/** A certificate authority as Fulcio is one, with an intermediate, and a transparency log as Rekor is one. */
export class SigstoreWorld {
  readonly #directory = mkdtempSync(path.join(tmpdir(), 'sigstore-'));
  readonly log = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  readonly root = this.#issue(
    'root',
    undefined,
    'basicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign',
  );
  readonly intermediate = this.#issue(
    'intermediate',
    'root',
    'basicConstraints=critical,CA:true,pathlen:0\nkeyUsage=critical,keyCertSign\nextendedKeyUsage=codeSigning',
  );

  /** Issues a certificate for an identity: `email:…` or `URI:…`. */
  issue(
    name: string,
    identity: string,
    issuer: string,
    { usage = 'codeSigning', by = 'intermediate', first = issuer } = {},
  ): IssuedCertificate {
    return this.#issue(
      name,
      by,
      `keyUsage=critical,digitalSignature\nextendedKeyUsage=${usage}\nsubjectAltName=critical,${identity}\n` +
        `1.3.6.1.4.1.57264.1.1=DER:${Buffer.from(first).toString('hex')}\n1.3.6.1.4.1.57264.1.8=ASN1:UTF8String:${issuer}`,
    );
  }

  #issue(name: string, by: string | undefined, extensions: string): IssuedCertificate {
    const file = (suffix: string, of = name): string => path.join(this.#directory, `${of}.${suffix}`);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    writeFileSync(file('key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(
      file('ext'),
      `${extensions}\nsubjectKeyIdentifier=hash\n${by === undefined ? '' : 'authorityKeyIdentifier=keyid\n'}`,
    );
    run('req', '-new', '-key', file('key'), '-subj', `/O=test/CN=${name}`, '-out', file('csr'));
    const issuer =
      by === undefined
        ? ['-signkey', file('key')]
        : ['-CA', file('pem', by), '-CAkey', file('key', by), '-CAcreateserial'];
    run(
      'x509',
      '-req',
      '-in',
      file('csr'),
      '-days',
      '2',
      '-extfile',
      file('ext'),
      ...issuer,
      '-out',
      file('pem'),
    );
    return { key: privateKey, pem: readFileSync(file('pem'), 'utf8') };
  }

  /** The `dev.sigstore.cosign/bundle` annotation: an entry of the log with its signed timestamp. */
  logEntry(
    payload: Buffer,
    signature: string,
    signer: string,
    { at = Math.floor(Date.now() / 1000), log = this.log } = {},
  ): string {
    const content = {
      apiVersion: '0.0.1',
      kind: 'hashedrekord',
      spec: {
        data: { hash: { algorithm: 'sha256', value: createHash('sha256').update(payload).digest('hex') } },
        signature: { content: signature, publicKey: { content: Buffer.from(signer).toString('base64') } },
      },
    };
    const body = Buffer.from(JSON.stringify(content)).toString('base64');
    const entry = { body, integratedTime: at, logID: keyId(log.publicKey), logIndex: 7 };
    const promise = sign('sha256', Buffer.from(JSON.stringify(entry)), log.privateKey).toString('base64');
    return JSON.stringify({ SignedEntryTimestamp: promise, Payload: entry });
  }

  /** A trusted_root.json without certificate transparency. */
  trustedRoot(): string {
    const rawBytes = (pem: string): string => pem.replace(/-----[^-]+-----|\s/g, '');
    const spki = this.log.publicKey.export({ type: 'spki', format: 'der' });
    const validFor = { start: '2020-01-01T00:00:00Z' };
    return JSON.stringify({
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [
        {
          baseUrl: 'https://rekor.example',
          hashAlgorithm: 'SHA2_256',
          publicKey: { rawBytes: spki.toString('base64'), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor },
          logId: { keyId: Buffer.from(keyId(this.log.publicKey), 'hex').toString('base64') },
        },
      ],
      certificateAuthorities: [
        {
          subject: { organization: 'test', commonName: 'test' },
          uri: 'https://fulcio.example',
          certChain: {
            certificates: [this.intermediate, this.root].map(({ pem }) => ({ rawBytes: rawBytes(pem) })),
          },
          validFor,
        },
      ],
    });
  }

  logKey(): string {
    return this.log.publicKey.export({ type: 'spki', format: 'pem' }) as string;
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A key pair as PEM. */
export function pemPair(): { privateKey: string; publicKey: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) as string,
  };
}

function keyId(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function run(...args: string[]): void {
  const { status, stderr } = spawnSync('openssl', args);
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr.toString()}`);
}
