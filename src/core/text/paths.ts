import path from 'node:path';

/** Reports whether a path is a directory or lies below it. Both are absolute. */
export function isWithin(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/** Returns the name of a file in messages: relative if it is below the working directory. */
export function shownPath(workingDirectory: string, file: string): string {
  if (!isWithin(workingDirectory, file)) return file;
  return path.relative(workingDirectory, file) || '.';
}
