import type { TestProject } from 'vitest/node';
import { commandFile } from '../support/command-line.js';
import { type ControlPlane, type Programs, startControlPlane } from './control-plane.js';
import { findPrograms, missingPrograms, requestedRelease } from './toolchain.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Kubeconfig of an administrator of the control plane. */
    kubeconfig: string;
    /** kubectl of the release. */
    kubectl: string;
    /** Release of the control plane: `1.36.3`. */
    release: string;
  }
}

let cluster: ControlPlane | undefined;

/** Starts one control plane for all tests of the project; tests are apart by namespaces and names. */
export async function setup(project: TestProject): Promise<void> {
  const release = requestedRelease();
  const missing = missingPrograms(release);
  if (missing !== undefined) throw new Error(`${missing}; run npm run test:cluster`);
  const programs = findPrograms(release) as Programs;
  const images = { 'registry.example.com/tools/opmate:latest': [process.execPath, commandFile] };
  cluster = await startControlPlane(programs, images);
  project.provide('kubeconfig', cluster.kubeconfig);
  project.provide('kubectl', programs.kubectl);
  project.provide('release', release);
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
