import { spawn } from 'node:child_process';
import type { Logger } from '../../core/log.js';

const openers: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Starts the user's browser with a URL; warns on failure. */
export function openBrowser(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
  logger: Logger,
): void {
  const [command, ...args] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(command as string, [...args, url], {
    env: environment,
    stdio: 'ignore',
    detached: true,
  });
  const warn = (reason: string): void =>
    logger.log('warn', `no browser opened: ${command}: ${reason}; open ${url}`);
  child.on('error', (error) => warn(error.message));
  child.on('exit', (code) => {
    if (code !== 0 && code !== null) warn(`exit code ${code}`);
  });
  child.unref();
}
