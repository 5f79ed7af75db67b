// Mirroring (Chen et al. 2016) for graphs of any shape: how often each value is recomputed.
//
// A mirror count is how often a value is recomputed (0: kept). A value v with count m(v) exists in
// copies 0 (the forward pass) to m(v). For k = 1, 2, ..., in forward order, each v with k <= m(v)
// gets copy k. It is made from the latest copies of its inputs so far: copy min(k, m(u)) of input
// u. Gradients read copy m(v). A copy is computed just before the first gradient that needs it and
// lives until its last reader; copies that no gradient needs are never computed.
//
//   m = 0 everywhere    the ordinary step
//   m = 0 and 1         segments: values of 0 are kept, values of 1 recomputed from them, once
//   m = 0, 1 and 2      segments of segments: copy 1 is made for the 1s, which are kept while
//                       their segment goes backward; copy 2 of the rest is made from those
//
//     m    0 2 2 1 2 2 1 2 2 0 ...       recomputed for the gradients of this segment:
//          └───── a segment ─┘           1 1 1 1 1 1                    copies up to the last 1,
//                                                    2 2 ◀ 2 2 ◀ 2 2 ◀  then part by part (◀
//                                                    gradients)
#pragma once

#include <vector>

#include "plan/schedule/chain.h"
#include "plan/schedule/recompute.h"

namespace thimble {

using MirrorCounts = std::vector<int>;  // by value

// The schedule with these counts, corrected first: 0 for values that cannot be recomputed or are
// marked `keep`, at least 1 for those marked `recompute`, and for a view the count of its base.
Schedule schedule_mirrored(const ForwardPass& pass, MirrorCounts counts);

// Counts of nested segments: inputs of the blocks `kept[i]` have count i, everything else
// kept.size(). One list gives segments, two give segments of segments. The lowest count wins.
MirrorCounts mirror_segments(const ForwardPass& pass, const std::vector<Block>& blocks,
                             const std::vector<std::vector<size_t>>& kept);

// Recomputes the results of cheap ops once more than their neighbours, wherever their inputs are in
// memory anyway. So of a recomputed segment, only results of costly ops wait for the gradients.
// Small extras (statistics, indices) are kept: they take almost no memory.
void mirror_cheap(const ForwardPass& pass, MirrorCounts& counts);

}  // namespace thimble
