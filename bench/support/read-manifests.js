// Reads manifests of a registry in a process of its own: READ-MANIFESTS HOST COUNT http|node-fetch|opmate. Prints the
// processor time of loading the client and reading, in milliseconds per response.
const [host, countText, client] = process.argv.slice(2);
const count = Number(countText);
const atOnce = 6;

const clients = {
  /** What any client costs: one response to its end, and nothing else. */
  async http() {
    const { Agent, get } = await import('node:http');
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
    const read = (url) =>
      new Promise((resolve, reject) => {
        const sent = get(url, { agent }, (response) => {
          const chunks = [];
          response.on('data', (chunk) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () => resolve(Buffer.concat(chunks)));
        });
        sent.on('error', reject);
      });
    return { read, close: () => agent.destroy() };
  },

  async 'node-fetch'() {
    const { Agent } = await import('node:http');
    const { default: fetch } = await import('node-fetch');
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
    const read = async (url) => {
      const response = await fetch(url, { agent, redirect: 'manual', compress: false });
      const chunks = [];
      for await (const chunk of response.body) chunks.push(chunk);
      return Buffer.concat(chunks);
    };
    return { read, close: () => agent.destroy() };
  },

  /** Also retries, authenticates, follows redirects, and limits time and size. */
  async opmate() {
    const { createConnection } = await import('../../dist/oci/registry/connection.js');
    const connection = createConnection({ environment: {}, homeDirectory: '/nonexistent', useHttp: true });
    const [{ transport }] = await connection.endpoints(host, 'image/0');
    const read = async (url) =>
      (
        await transport.send({ method: 'GET', url, scope: { repository: 'image/0', actions: ['pull'] } })
      ).read(4_194_304, url);
    return { read, close: () => connection.close() };
  },
};

const begun = process.cpuUsage();
const { read, close } = await clients[client]();
let next = 0;
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (next < count) {
      const bytes = await read(`http://${host}/v2/image/${next++ % 100}/manifests/v1`);
      if (bytes.length < 100) throw new Error(`short response: ${bytes}`);
    }
  }),
);
const { user, system } = process.cpuUsage(begun);
close();
console.log((user + system) / 1000 / count);
