/*
 * The entry of the program in the child process. V8 refuses the compiled code of Node's own modules if its flags differ from those
 * that Node was built with, so the flag of the command line is taken back until they are loaded (flags.ts sets it again). This
 * thread goes on refusing code from text: V8 reads the flag when it makes a context. The watchdog's, which no script reaches, is
 * made meanwhile and refuses none.
 */
import { setFlagsFromString } from 'node:v8'

setFlagsFromString('--no-disallow-code-generation-from-strings')
await import('./instance.ts')
