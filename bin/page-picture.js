// Takes the picture of the page that README.md shows, of bundles that come with the project, in the Chromium of
// the system. Run it with `npm run picture`.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const command = path.join(root, 'bin', 'opmate.cjs');
const picture = path.join(root, 'docs', 'view.png');
const maxBytes = 150_000;
const work = mkdtempSync(path.join(tmpdir(), 'opmate-picture-'));

const packages = [
  {
    name: 'skupper-operator',
    channels: {
      stable: [
        { version: '1.9.0', replaces: '1.8.4', skips: ['1.8.3'], skipRange: '>=1.8.0 <1.9.0' },
        { version: '1.8.4', replaces: '1.8.2', skips: ['1.8.3'] },
        { version: '1.8.3', replaces: '1.8.2' },
        { version: '1.8.2' },
      ],
      'stable-1.8': [
        { version: '1.8.4', replaces: '1.8.3' },
        { version: '1.8.3', replaces: '1.8.2' },
        { version: '1.8.2' },
      ],
    },
  },
];

function writeCatalog(directory) {
  mkdirSync(directory);
  for (const { name, channels } of packages) {
    const versions = new Set(
      Object.values(channels).flatMap((entries) => entries.map((entry) => entry.version)),
    );
    const bundles = [...versions].map((version) => path.join(root, 'fixtures', 'bundles', name, version));
    const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'render', ...bundles], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    if (status !== 0) throw new Error(stderr);
    const bundleName = (version) => `${name}.v${version}`;
    const blobs = [
      { schema: 'olm.package', name, defaultChannel: Object.keys(channels)[0] },
      ...Object.entries(channels).map(([channel, entries]) => ({
        schema: 'olm.channel',
        ...{ package: name, name: channel },
        entries: entries.map(({ version, replaces, skips, ...more }) => ({
          name: bundleName(version),
          ...(replaces !== undefined && { replaces: bundleName(replaces) }),
          ...(skips !== undefined && { skips: skips.map(bundleName) }),
          ...more,
        })),
      })),
    ];
    const text = blobs.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join('');
    writeFileSync(path.join(directory, `${name}.json`), text + stdout);
  }
}

async function takePicture() {
  writeCatalog(path.join(work, 'catalog'));
  const server = spawn(process.execPath, [command, 'view', 'catalog'], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const executablePath = ['chromium', 'chromium-browser', 'google-chrome']
    .map((name) => spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim())
    .find((file) => file !== '');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const [line] = await once(server.stdout, 'data');
    const page = await browser.newPage({ viewport: { width: 1200, height: 640 }, colorScheme: 'light' });
    await page.goto(`${String(line).trim()}#/package/skupper-operator`);
    await page.locator('.panel').waitFor();
    await page.locator('.package-heading img, .package-heading .letter').first().waitFor();
    await page.waitForLoadState('networkidle');
    await page.screenshot({ path: picture });
  } finally {
    await browser.close();
    server.kill('SIGTERM');
    if (server.exitCode === null) await once(server, 'exit');
  }
  const { size } = statSync(picture);
  console.log(`${path.relative(root, picture)}: ${size} bytes`);
  if (size > maxBytes) throw new Error(`the picture is larger than ${maxBytes} bytes`);
}

try {
  await takePicture();
} finally {
  rmSync(work, { recursive: true, force: true });
}
