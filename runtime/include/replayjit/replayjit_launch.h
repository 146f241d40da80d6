/*===- replayjit_launch.h - How launches follow each other --------*- C -*-===*\
|*                                                                            *|
|* Flags of a launch, and what a programmatic one asks of the chain that it   *|
|* stands in. replayjit.h includes it.                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef REPLAYJIT_REPLAYJIT_LAUNCH_H
#define REPLAYJIT_REPLAYJIT_LAUNCH_H

/* Flags of a launch, to be added. */
/* The arguments are not looked at. */
#define REPLAYJIT_LAUNCH_UNCHECKED 1u
/* It may start before the kernel before it on the stream has ended, and waits
 * for that end by itself: only with a programmatic_launch, on sm_90 and later.
 * See below what the caller must see to. */
#define REPLAYJIT_LAUNCH_PROGRAMMATIC 2u
/* Also checked is of every pointer in the arguments that the driver, or the
 * emulation, knows it as memory that the kernel's device may use: allocated on
 * it, or mapped, managed or shared with it. For debugging: it allocates, and
 * costs driver calls for each pointer, some microseconds in all. Not with
 * UNCHECKED. */
#define REPLAYJIT_LAUNCH_CHECK_MEMORY 4u
/* Also checked is that no two live rows meet in a state slot or ring slot that
 * one of them writes: the rows of a launch run at once, and which of them
 * counts would be chance. For debugging: it copies the index arrays to the host
 * and waits for the stream, which is not under capture. Emulation always does
 * it, and for plans as well. Not with UNCHECKED. */
#define REPLAYJIT_LAUNCH_CHECK_ROWS 8u

/*===- Programmatic launches ----------------------------------------------===*/

/* Before a programmatic launch has waited it stores nothing, and reads nothing
 * of q, k, v, a and b (of any argument with DEPENDENTS_ALL, and if it is a
 * materialize). The independent arguments, which are slots, cursors,
 * checkpoint, rings and parameters, are on their way by then: at small batches
 * that is most of a launch. The same kernel without the flag is an ordinary
 * launch, and may follow anything.
 *
 * What must hold: let W be a kernel that writes an independent argument of this
 * launch. Between W and this launch, on the stream, stands a kernel that is
 *  - an ordinary launch, or
 *  - late: a programmatic launch whose blocks all call griddepcontrol.wait, and
 *    griddepcontrol.launch_dependents only after it, as PROGRAMMATIC_LATE does.
 * Why: this launch may start once each block of the kernel before it, P, has
 * called launch_dependents or ended. If P is ordinary, or late, then all
 * kernels before P have ended, and what they wrote can be read. P itself may
 * run on, so P is not W. If P calls launch_dependents early, as
 * PROGRAMMATIC_EARLY does, the kernel before P may run on too, so that one is
 * not W either, and so on, back to the first kernel that is ordinary or late.
 *
 * In a model it holds: states and cursors were written by the last step of the
 * same layer and by this step's plan, and a layer's convolution or projection,
 * or sampling, lies between. It does not hold, and the launch must be an
 * ordinary one: right behind a plan, a materialize, or a kernel that copies
 * states; where all kernels since then are early; and in a bare loop of steps
 * of one layer. Plans are ordinary launches and never call launch_dependents
 * early.
 *
 * Kernels that are launched programmatically behind this one must, in every
 * block, call griddepcontrol.wait before they read its output or write anything
 * that it uses. One that never waits lets the kernels behind it start while
 * this one still runs.
 *
 * A chain for which it holds: begin of a plan (ordinary), convolution (late),
 * decode (early), projection (late), convolution (late), decode (early), ...,
 * sampling (ordinary), commit of the plan (ordinary).
 */

#endif
