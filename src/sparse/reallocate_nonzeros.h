// Moves the nonzeros of sparse weights: dynamic sparse reparameterisation (Mostafa & Wang 2019),
// and moving the smallest of each weight by itself (Mocanu et al. 2018) to compare with.
//
// A reallocation prunes nonzeros and grows as many, so that their number is the same to the
// element:
//   1. prune  dynamic: every |w| below a threshold that all weights share; magnitude: the given
//   share
//             of each weight, smallest first. A weight keeps at least one nonzero. Never more than
//             there are places to grow at.
//   2. grow   as many, at random places that were zero before (so none just pruned), as zeros.
//   dynamic:
//             in proportion to what survived in each weight; magnitude: as many as it lost.
//   3. adapt  dynamic: the threshold is halved when more than 1.1 times the target was below it,
//   doubled
//             when less than 0.9 times.
// Optimizer state moves along with its weight, and starts at zero where a weight does.
//
// All of it happens in the pools where they lie:
//   pool    | a a' a | b b' | c c c |      a' and b' are pruned
//   close   | a a b c c c . .         |    survivors move to the left, in order
//   open    | a 0 a | b | c 0 c c     |    from the right: survivors to their places, zeros between
// The places to grow at are noted in bitmaps in the part of the arena that only steps use. Where
// the host cannot reach the arena, it works on a copy.
#pragma once

#include <cstdint>
#include <vector>

#include "base/number/philox.h"
#include "execute/program.h"
#include "transform/sparse_weights.h"
#include "transform/sparsify.h"

namespace thimble {

// When: after every `period` steps of the stage that the step is in, up to `until`.
struct ReallocationSchedule {
  struct Stage {
    int64_t from = 0;  // steps done
    int64_t period = 1;
  };
  std::vector<Stage> stages;  // ascending
  int64_t until = 0;

  bool due(int64_t steps_done) const;
};

// Every 100 steps; 200, 400 and 800 from epochs 25, 80 and 140 on. `every` above 0: that instead.
// None in the last twentieth of the run, when weights that are grown would not have the time to
// learn.
ReallocationSchedule reallocation_schedule(int64_t every, int64_t steps_per_epoch, int64_t steps);

struct Reallocation {
  int64_t below = 0;     // nonzeros that were to be pruned
  int64_t moved = 0;     // that were, for want of room perhaps fewer
  double threshold = 0;  // that was pruned below
};

class Reallocator {
 public:
  // REQUIRES: the program has sparse weights, and outlives it. UserError when the optimizer's state
  // cannot move.
  Reallocator(Program& program, const SparsitySpec& spec, uint64_t seed);

  // Between two steps, after `steps_done`. Overwrites everything in the arena that is not
  // persistent; allocates nothing where the host reaches the arena.
  Reallocation run(int64_t steps_done);

 private:
  struct Pool {
    ValueId value;
    size_t size;                // of an element
    std::byte* data = nullptr;  // while run() has it, as below
  };
  // The decision about one weight.
  struct Weight {
    int64_t elements;
    SparseWeight values;
    int64_t grown_at;  // bitmap, in scratch
    PhiloxKey key;
    uint8_t* mask = nullptr;
    int64_t* first = nullptr;
    uint8_t* grown = nullptr;
  };

  void map_all();
  Reallocation reallocate(int64_t steps_done);
  int64_t choose_counts(int64_t step);
  void close(int64_t step);
  void open();
  void note_growth(const Weight& weight, int64_t count, int64_t active, int64_t step);
  float magnitude(int64_t at) const;
  void move(int64_t to, int64_t from);
  void clear(int64_t at);

  Program& program_;
  const SparsitySpec spec_;
  const DType dtype_;
  const int64_t total_;
  const PhiloxKey key_;
  const ValueId threshold_value_;
  Bytes scratch_;  // for the bitmaps
  double* threshold_ = nullptr;
  std::vector<HostMapping> mappings_;  // of run()
  std::vector<Pool> pools_;            // values, then optimizer state
  std::vector<Weight> weights_;
  // By weight, of the reallocation that is under way:
  std::vector<int64_t> active_, pruned_, survivors_, room_, grown_;
};

}  // namespace thimble
