// gather_fold_8bit: every thread takes a range of the blocks that the weight's part of the pool
// touches, and finds the first of its nonzeros by counting.
#include <cstring>

#include "backend/cpu/update/state_blocks.h"
#include "base/number/bits.h"

namespace thimble {
namespace {

constexpr size_t kOwnInputs = 6;

// The ones of a mask, one after another.
class Ones {
 public:
  // Begins with the one that `skipped` others come before.
  Ones(const uint8_t* mask, int64_t elements, int64_t skipped) : mask_(mask), elements_(elements) {
    bits_ = bits_within(mask_, 0, 0, elements_);
    for (int64_t rest = skipped; rest > 0;) {
      const int here = std::popcount(bits_);
      if (rest >= here) {
        rest -= here;
        load(byte_ + 1);
      } else {
        for (; rest > 0; --rest) bits_ &= bits_ - 1;
      }
    }
  }
  // REQUIRES: there is one.
  int64_t next() {
    while (bits_ == 0) load(byte_ + 1);
    const int64_t at = 8 * byte_ + std::countr_zero(bits_);
    bits_ &= bits_ - 1;
    return at;
  }

 private:
  void load(int64_t byte) {
    byte_ = byte;
    bits_ = 8 * byte < elements_ ? bits_within(mask_, byte, 0, elements_) : 0;
  }

  const uint8_t* mask_;
  const int64_t elements_;
  int64_t byte_ = 0;
  unsigned bits_ = 0;
};

// The weight's nonzeros are the elements [begin, end) of the pool.
struct Part {
  int64_t begin, end;
};

// Gathers what T holds, of 16 or 32 bits, as it is.
template <class T>
THIMBLE_INLINE void gather_raw(const TensorRef& dense, Ones& ones, int64_t count, void* to) {
  for (int64_t i = 0; i < count; ++i) static_cast<T*>(to)[i] = dense.as<const T>()[ones.next()];
}

THIMBLE_FOR_EACH_ISA void fold_shares(const KernelArgs& args, const RandomStream& random,
                                      float factor, Part part, Ones ones, int64_t begin,
                                      int64_t end) {
  const TensorRef& dense = args.inputs[2];
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = std::max(part.begin, block * kCodeBlock);
    const int64_t count = std::min(part.end, (block + 1) * kCodeBlock) - first;
    alignas(64) float raw[kCodeBlock];
    float room[kCodeBlock], share[kCodeBlock] = {};
    if (dense.type.dtype == DType::f32) {
      gather_raw<uint32_t>(dense, ones, count, raw);
    } else {
      gather_raw<uint16_t>(dense, ones, count, raw);
    }
    const TensorRef gathered = {raw, {{count}, dense.type.dtype}};
    const float* gradient = as_f32(gathered, 0, count, room);
    float* own = share + (first - block * kCodeBlock);
    for (int64_t i = 0; i < count; ++i) own[i] = factor * gradient[i];
    fold_block(args, random, block, share);
  }
}

class GatherFold final : public Kernel {
 public:
  explicit GatherFold(const Signature& s)
      : parts_(code_blocks(std::min(s.inputs[0].elements(), s.inputs[2].elements())),
               16 * kCodeBlock) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    const float factor = gradient_factor(args, kOwnInputs);
    const auto* mask = args.inputs[4].as<const uint8_t>();
    const int64_t elements = args.inputs[2].elements();
    const int64_t first = *args.inputs[3].as<const int64_t>();
    const Part part = {first, first + count_ones(mask, 0, elements)};
    if (factor == 0 || part.begin == part.end) return;
    const RandomStream random(args.inputs[5].as<const int64_t>(), args.attrs->integer("stream"));
    const int64_t lowest = part.begin / kCodeBlock;
    const int64_t blocks = (part.end - 1) / kCodeBlock + 1 - lowest;
    // How many blocks there are depends on the mask: the threads share them anew at every call.
    parts_.run([&](int which, int64_t, int64_t) {
      const int64_t begin = lowest + blocks * which / parts_.count();
      const int64_t end = lowest + blocks * (which + 1) / parts_.count();
      const int64_t skipped = std::max<int64_t>(0, begin * kCodeBlock - part.begin);
      if (begin < end) {
        fold_shares(args, random, factor, part, Ones(mask, elements, skipped), begin, end);
      }
    });
  }

 private:
  const Parts parts_;
};

}  // namespace

extern const CpuKernel cpu_gather_fold_8bit{"gather_fold_8bit",
                                            make_where<GatherFold, fits_blocks>};

}  // namespace thimble
