// The reference for copying images: skopeo, once an image. SKOPEO-LOOP SOURCE TARGET NAME…
import { spawnSync } from 'node:child_process';

const [source, target, ...names] = process.argv.slice(2);
const flags = ['copy', '--insecure-policy', '--src-tls-verify=false', '--dest-tls-verify=false'];
for (const name of names) {
  const places = [`docker://${source}/${name}`, `docker://${target}/${name}`];
  const { status, stderr } = spawnSync('skopeo', [...flags, ...places]);
  if (status !== 0) throw new Error(`skopeo ${name}: ${stderr}`);
}
