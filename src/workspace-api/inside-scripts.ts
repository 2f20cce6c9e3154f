import { SandglassError } from '../errors/index.ts'
import { withoutSpans } from '../telemetry/index.ts'
import type { OpenWorkspace } from './open-workspaces.ts'

/*
 * Links and copies inside of a workspace are made inside of its sandbox: whatever links a script has put there, they
 * lead nowhere that the script could not go itself. Only `os` is imported, because a file of the workspace could have the name
 * of another module.
 */

/** Links `to` to `target`, and replaces an existing file or link. */
const LINK = `
import os
os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
draft = to + ".link-" + os.urandom(8).hex()
os.symlink(target, draft)
try:
    os.rename(draft, to)
except OSError:
    os.unlink(draft)
    raise
`

/** Copies a file or a directory. Links in it are followed; a target outside of \`root\` is an error. */
const COPY = `
import os

def copy(source, target):
    real = os.path.realpath(source)
    if not (real + "/").startswith(root + "/"):
        raise OSError(f"{source} leads out")
    if os.path.isdir(real):
        os.makedirs(target, exist_ok=True)
        for name in sorted(os.listdir(real)):
            copy(os.path.join(source, name), os.path.join(target, name))
    elif os.path.isfile(real):
        with open(real, "rb") as given, open(target, "wb") as taken:
            while piece := given.read(1 << 20):
                taken.write(piece)
        os.chmod(target, 0o755 if os.stat(real).st_mode & 0o111 else 0o644)
    elif os.path.lexists(source):
        raise OSError(f"{source} is neither a file nor a directory")
    else:
        raise FileNotFoundError(source)

real, place = os.path.realpath(target), os.path.realpath(to)
if (place + "/").startswith(real + "/"):
    raise OSError("a directory cannot be copied into itself")
os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
copy(target, to)
`

/** @throws SandglassError `path_refused` with what Python says. */
export async function linkInside(
  workspace: OpenWorkspace,
  target: string,
  to: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  await act(workspace, LINK, { target, to }, `${to} could not be made a link to ${target}`, signal)
}

/** @throws SandglassError `path_refused` with what Python says. */
export async function copyInside(
  workspace: OpenWorkspace,
  target: string,
  to: string,
  root: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  await act(workspace, COPY, { target, to, root }, `${target} could not be copied to ${to}`, signal)
}

async function act(
  { sandbox }: OpenWorkspace,
  script: string,
  inputs: Record<string, string>,
  problem: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const options = { inputs, ...(signal === undefined ? {} : { signal }) }
  const result = await withoutSpans(() => sandbox.run(script, options))
  if (result.error === null) return
  throw new SandglassError('path_refused', `${problem}: ${result.error.slice(0, MAX_MESSAGE)}`)
}

const MAX_MESSAGE = 500
