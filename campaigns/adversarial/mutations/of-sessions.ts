import type { Mutation } from './mutation.ts'

const HARNESS = 'harness/sandglass_harness'

/** The defences of sessions. */
export const SESSION_MUTATIONS: readonly Mutation[] = [
  {
    name: 'end-of-rolled-back-cells',
    defence: 'a rollback ends every process that the session started since',
    instead: 'it ends the process that ran the cell, and copies of it',
    patches: [
      {
        file: `${HARNESS}/script/keeper.py`,
        from: 'found = self._stop_all(marks) - set(kept)',
        to: 'found = (self._stop_all(marks) - set(kept)) & {old, *own}',
      },
    ],
    selected: [{ suite: 'session-rollback', titles: ['a rollback ends the programs and threads'] }],
    quick: [],
  },
  {
    name: 'copy-of-each-state',
    defence: 'the state after each cell is copied before the next one runs',
    instead: 'only the first state is',
    patches: [
      {
        file: `${HARNESS}/broker/session_activity.py`,
        from: '        self.watch_head_end()\n        self.copies.owe()\n',
        to: '        self.watch_head_end()\n',
      },
    ],
    selected: [{ suite: 'session-rollback', titles: ['a session survives'] }],
    quick: [],
  },
  {
    name: 'secrets-of-one-cell',
    defence: 'secrets in the environment and functions of the host are gone after their cell, and in all copies',
    instead: 'later cells find them',
    patches: [
      {
        file: `${HARNESS}/session/cell.py`,
        from: '        for name, value in secrets.items():\n',
        to: '        for name, value in ():\n',
      },
      {
        file: `${HARNESS}/session/cells.py`,
        from: '            if self.scope.get(name) is value:\n                del self.scope[name]\n',
        to: '            pass\n',
      },
    ],
    selected: [{ suite: 'session-cells', titles: ['tools, inputs, files and secrets of its own'] }],
    quick: [],
  },
  {
    name: 'memory-beside-copies',
    defence: 'no copy is made of a session that uses more than 45 % of its memory limit',
    instead: 'it is made of any',
    patches: [
      {
        file: `${HARNESS}/broker/session_copies.py`,
        from: '        if most and _uses_more_than(most, self._owner.head.pid):\n',
        to: '        if most == 0:\n',
      },
    ],
    selected: [{ suite: 'session-checkpoints', titles: ['45 % of its memory limit'] }],
    quick: [],
  },
]
