import { SandglassError } from '../errors/index.ts'
import { formatPath } from '../support/index.ts'
import type { Link } from './link.ts'
import { Operation } from './operation.ts'

/** The SHA-256 of a file, or of the paths and contents below a directory. */
export interface PathDigest {
  readonly sha256: string
  readonly files: number
  readonly bytes: number
}

/** @throws SandglassError `path_not_found`, `path_refused` for a directory that is not empty, `aborted` */
export async function removePath(
  link: Link,
  path: string,
  { recursive, signal }: { readonly recursive: boolean; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const question = { type: 'file_remove', path, recursive } as const
  await new Operation(link, 'a path could not be removed', question, { signal }).awaitDone()
}

/** @throws SandglassError `path_refused`, `no_space`, `aborted` */
export async function makeDirectory(
  link: Link,
  path: string,
  mode: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const question = { type: 'file_make', path, mode } as const
  await new Operation(link, 'a directory could not be made', question, { signal }).awaitDone()
}

/** @throws SandglassError `path_not_found`, `too_large`, `workspace_io`, `aborted` */
export async function digestPath(link: Link, path: string, signal: AbortSignal | undefined): Promise<PathDigest> {
  const question = { type: 'file_digest', path } as const
  const { result } = await new Operation(link, 'a path could not be read', question, { signal }).awaitDone()
  const { sha256, files, bytes } = (result ?? {}) as Record<string, unknown>
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    throw new SandglassError('workspace_io', `the sandbox sent no SHA-256 of ${formatPath(path)}`)
  return { sha256, files: Number(files) || 0, bytes: Number(bytes) || 0 }
}
