import type { Workspace } from '../../src/index.ts'

/** A cell whose thread ends the process of the session between two cells, when {@link endSessionProcess} says so. */
export const ENDS_LATER = `import os, threading, time
def end_later():
    while not os.path.exists("end-now"): time.sleep(0.01)
    os._exit(1)
with open("pid", "w") as file: file.write(str(os.getpid()))
threading.Thread(target=end_later, name="ends-later", daemon=True).start()`

/** The warning of the next cell. */
export const PROCESS_ENDED: string =
  'the process of the session ended after the last cell; the session went back to the state after it; this could not be restored: lost: thread ends-later; ' +
  'the process id changes with each rollback and branch: a stored one is stale'

/** Ends the process of a session in this workspace that ran {@link ENDS_LATER}. */
export async function endSessionProcess(workspace: Workspace): Promise<void> {
  await workspace.put({ 'end-now': '' })
  const { error } = await workspace.run(`import os, time
while os.path.exists("/proc/" + open("pid").read()): time.sleep(0.01)
os.remove("end-now")`)
  if (error !== null) throw new Error(error)
}
