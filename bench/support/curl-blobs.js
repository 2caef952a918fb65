// The reference for large blobs: curl into curl, one blob after the other. CURL-BLOBS SOURCE TARGET NAME=DIGEST…
import { spawnSync } from 'node:child_process';

const [source, target, ...blobs] = process.argv.slice(2);
for (const blob of blobs) {
  const [name, digest] = blob.split('=');
  const from = `http://${source}/v2/${name}/blobs/${digest}`;
  const begin = `http://${target}/v2/${name}/blobs/uploads/`;
  const script = `set -e -o pipefail
    location=$(curl -sf -X POST -D - -o /dev/null ${begin} | tr -d '\\r' | sed -n 's/^[Ll]ocation: //p')
    case $location in /*) location=http://${target}$location ;; esac
    case $location in *\\?*) location="$location&digest=${digest}" ;; *) location="$location?digest=${digest}" ;; esac
    curl -sf ${from} | curl -sf -T - -H 'content-type: application/octet-stream' "$location"`;
  const { status, stderr } = spawnSync('bash', ['-c', script]);
  if (status !== 0) throw new Error(`curl ${blob}: ${status} ${stderr}`);
}
