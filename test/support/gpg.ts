/** GnuPG, an implementation of OpenPGP that is not ours. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A GnuPG home of its own. */
export class Gpg {
  // Sockets of its agent lie here: the path has to be short.
  readonly home = mkdtempSync(join(tmpdir(), 'gpg-'));

  /** Runs gpg and returns its output; throws when it fails. */
  run(args: readonly string[], input?: Buffer | string): Buffer {
    const { status, stdout, stderr } = this.#spawn(args, input);
    if (status !== 0) throw new Error(`gpg ${args.join(' ')}: ${stderr.toString()}`);
    return stdout;
  }

  /** Whether gpg verifies a signed message, or a file with its detached signature. */
  accepts(message: Buffer): boolean {
    return this.#spawn(['--verify'], message).status === 0;
  }

  /** Makes a key without passphrase and returns its fingerprint. */
  makeKey(name: string, { algorithm = 'rsa2048', usage = 'sign', expires = 'never', at = '' } = {}): string {
    this.run([
      ...faked(at),
      '--quick-generate-key',
      `${name} <${name}@example.com>`,
      algorithm,
      usage,
      expires,
    ]);
    return this.fingerprints(name)[0] as string;
  }

  /** Fingerprints of a key and its subkeys. */
  fingerprints(name: string): string[] {
    const listing = this.run(['--with-colons', '--list-keys', name]).toString();
    return [...listing.matchAll(/^fpr:+([0-9A-F]{40}):/gm)].map((match) => match[1] as string);
  }

  publicKey(name: string, ...args: string[]): Buffer {
    return this.run([...args, '--export', name]);
  }

  sign(name: string, content: Buffer | string, ...args: string[]): Buffer {
    return this.run(
      [...args, '--local-user', name, ...(args.some((arg) => arg.includes('sign')) ? [] : ['--sign'])],
      content,
    );
  }

  #spawn(args: readonly string[], input: Buffer | string = '') {
    return spawnSync(
      'gpg',
      ['--batch', '--quiet', '--no-tty', '--pinentry-mode', 'loopback', '--passphrase', '', ...args],
      { input, env: { PATH: process.env.PATH, GNUPGHOME: this.home }, maxBuffer: 64 * 1024 * 1024 },
    );
  }

  close(): void {
    spawnSync('gpgconf', ['--kill', 'all'], { env: { PATH: process.env.PATH, GNUPGHOME: this.home } });
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Arguments that set the clock of gpg, as `20200101T000000`. */
export function faked(at: string): string[] {
  return at === '' ? [] : ['--faked-system-time', `${at}!`];
}
