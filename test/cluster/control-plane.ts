/**
 * A control plane on loopback: etcd, kube-apiserver, kube-controller-manager, and a stand-in for the kubelet. It keeps all data
 * in a temporary directory, and ends with the process that started it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startKubelet } from './kubelet.js';

/** Paths of the programs, as `findPrograms` of `toolchain.js` returns them. */
export type Programs = Readonly<
  Record<'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kubectl', string>
>;

export interface ControlPlane {
  /** File of an administrator. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

/** The API server as the administrator reaches it. */
export interface Api {
  /** Sends a request and returns the parsed response; rejects for other statuses than 2xx. */
  send(method: string, address: string, body?: unknown, contentType?: string): Promise<unknown>;
}

const startMs = 120_000;

/** Ports that were free a moment ago. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject);
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function connect(port: number, token: string, authority: Buffer): Api {
  return {
    send: (method, address, body, contentType = 'application/json') =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}`, 'content-type': contentType };
        const call = request(
          { host: '127.0.0.1', port, path: address, method, headers, ca: authority, timeout: 30_000 },
          (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.once('error', reject);
            response.once('end', () => {
              const text = Buffer.concat(chunks).toString();
              if ((response.statusCode ?? 0) >= 300) reject(new Error(`${response.statusCode}: ${text}`));
              else resolve(text.startsWith('{') ? JSON.parse(text) : text);
            });
          },
        );
        call.once('timeout', () => call.destroy(new Error('timeout')));
        call.once('error', reject);
        call.end(body === undefined ? undefined : JSON.stringify(body));
      }),
  };
}

/** Repeats an attempt until it succeeds, or one of the processes has ended. */
async function until(
  what: string,
  attempt: () => Promise<unknown>,
  processes: readonly Process[],
): Promise<void> {
  const end = Date.now() + startMs;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      const dead = processes.find(({ child }) => child.exitCode !== null || child.signalCode !== null);
      if (dead === undefined && Date.now() < end) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        continue;
      }
      const log = dead === undefined ? '' : (await readFile(dead.log, 'utf8')).slice(-2000);
      throw new Error(
        `${what} did not start${dead === undefined ? '' : `: ${dead.name} has ended:\n${log}`}`,
        {
          cause: error,
        },
      );
    }
  }
}

interface Process {
  name: string;
  child: ChildProcess;
  /** File with its output. */
  log: string;
}

function kubeconfigText(port: number, token: string, authority: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'test', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority': authority } },
    ],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}

/** Starts a control plane; takes seconds. Images are the commands that pods with them run, see `startKubelet`. */
export async function startControlPlane(
  programs: Programs,
  images: Readonly<Record<string, readonly string[]>> = {},
): Promise<ControlPlane> {
  const directory = await mkdtemp(path.join(tmpdir(), 'opmate-cluster-'));
  const at = (name: string): string => path.join(directory, name);
  const processes: Process[] = [];
  const start = (name: keyof Programs, args: readonly string[]): void => {
    const log = at(`${name}.log`);
    const child = spawn(programs[name], args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
    const file = createWriteStream(log);
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    child.once('error', () => undefined);
    processes.push({ name, child, log });
  };
  const stopAll = (): void => {
    for (const { child } of processes) child.kill('SIGKILL');
  };
  process.once('exit', stopAll);
  try {
    const [client = 0, peer = 0, secure = 0, manager = 0] = await freePorts(4);
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    await writeFile(at('sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
    await writeFile(at('sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
    const token = randomUUID();
    await writeFile(at('tokens.csv'), `${token},admin,admin,system:masters\n`);
    start('etcd', [
      `--data-dir=${at('etcd')}`,
      `--listen-client-urls=http://127.0.0.1:${client}`,
      `--advertise-client-urls=http://127.0.0.1:${client}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=default=http://127.0.0.1:${peer}`,
      // Nobody reads the data after a crash.
      '--unsafe-no-fsync',
    ]);
    start('kube-apiserver', [
      `--etcd-servers=http://127.0.0.1:${client}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${secure}`,
      `--cert-dir=${at('certificates')}`,
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.0.0.0/24',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${at('sa.pub')}`,
      `--service-account-signing-key-file=${at('sa.key')}`,
      `--token-auth-file=${at('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--allow-privileged=true',
    ]);
    let api: Api | undefined;
    const authority = at('certificates/apiserver.crt');
    await until(
      'kube-apiserver',
      async () => {
        api = connect(secure, token, await readFile(authority));
        await api.send('GET', '/readyz');
      },
      processes,
    );
    const ready = api as unknown as Api;
    await writeFile(at('kubeconfig'), kubeconfigText(secure, token, authority), { mode: 0o600 });
    start('kube-controller-manager', [
      `--kubeconfig=${at('kubeconfig')}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${manager}`,
      `--cert-dir=${at('manager')}`,
      `--service-account-private-key-file=${at('sa.key')}`,
      `--root-ca-file=${authority}`,
      '--leader-elect=false',
      // The only node is no machine that reports.
      '--controllers=*,-node-lifecycle-controller,-nodelifecycle',
    ]);
    await until(
      'kube-controller-manager',
      () => ready.send('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
      processes,
    );
    const kubelet = await startKubelet(ready, { directory: at('pods'), images });
    return {
      kubeconfig: at('kubeconfig'),
      async stop() {
        await kubelet.stop();
        stopAll();
        process.off('exit', stopAll);
        await Promise.all(
          processes.map(async ({ child }) => {
            if (child.exitCode === null && child.signalCode === null)
              await new Promise((resolve) => child.once('exit', resolve));
          }),
        );
        await rm(directory, { recursive: true, force: true });
      },
    };
  } catch (error) {
    stopAll();
    throw error;
  }
}
