/** Opens eight sessions with five checkpoints each, whose processes have the mark for a name, and says so. Its end is somebody else's work. */
import { createSandglass } from '../../src/index.ts'

const [mark = ''] = process.argv.slice(2)
const sg = await createSandglass({ engine: 'local', poolSize: 0 })
const workspace = await sg.workspace() // not closed at the end of this file
const sessions = await Promise.all(Array.from({ length: 8 }, () => workspace.session()))
await Promise.all(
  sessions.map(async (session) => {
    // Copies have the name of the head.
    await session.run(`import subprocess
import ctypes; ctypes.CDLL(None).prctl(15, b"${mark}", 0, 0, 0)
p = subprocess.Popen(["sleep", "1000"])`)
    for (let n = 0; n < 5; n += 1) await session.checkpoint()
  }),
)
console.log('open')
setInterval(() => undefined, 1000)
