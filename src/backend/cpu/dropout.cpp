// dropout: one pass. The random words are those of the reference, Philox 4x32-10 with key = seed
// and counter = { element / 4, stream, step, microbatch }; sixteen counters go through it side by
// side.
#include "backend/cpu/elementwise.h"
#include "base/philox.h"

namespace thimble {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kGroup = 4 * kLanes;  // elements whose words are made together

struct Source {
  PhiloxKey key;
  uint32_t stream, step, microbatch;
};

// words[4 * lane + w] = word w of counter first + lane
THIMBLE_INLINE void random_words(const Source& source, uint32_t first, uint32_t* words) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    c0[l] = first + static_cast<uint32_t>(l);
    c1[l] = source.stream;
    c2[l] = source.step;
    c3[l] = source.microbatch;
  }
  PhiloxKey key = source.key;
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t product0 = uint64_t{0xD2511F53u} * c0[l];
      const uint64_t product1 = uint64_t{0xCD9E8D57u} * c2[l];
      c0[l] = static_cast<uint32_t>(product1 >> 32) ^ c1[l] ^ key[0];
      c1[l] = static_cast<uint32_t>(product1);
      c2[l] = static_cast<uint32_t>(product0 >> 32) ^ c3[l] ^ key[1];
      c3[l] = static_cast<uint32_t>(product0);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (int l = 0; l < kLanes; ++l) {
    words[4 * l] = c0[l];
    words[4 * l + 1] = c1[l];
    words[4 * l + 2] = c2[l];
    words[4 * l + 3] = c3[l];
  }
}

// Groups of elements [begin, end).
THIMBLE_FOR_EACH_ISA void loop(const KernelArgs& args, int64_t begin, int64_t end) {
  const int64_t* rng = args.inputs[1].as<const int64_t>();
  const Source source = {philox_key(static_cast<uint64_t>(rng[0])),
                         static_cast<uint32_t>(args.attrs->integer("stream")),
                         static_cast<uint32_t>(rng[1]), static_cast<uint32_t>(rng[2])};
  const double drop = args.attrs->real("p");
  const auto p = static_cast<float>(drop), scale = static_cast<float>(1 / (1 - drop));
  const int64_t elements = args.outputs[0].elements();
  for (int64_t group = begin; group < end; ++group) {
    uint32_t words[kGroup];
    random_words(source, static_cast<uint32_t>(group * kLanes), words);
    const float* x = args.inputs[0].as<const float>() + group * kGroup;
    float* y = args.outputs[0].as<float>() + group * kGroup;
    const uint32_t* word = words;
    map_range(y, 0, std::min(kGroup, elements - group * kGroup), false, [=](int64_t i) {
      return static_cast<float>(static_cast<int32_t>(word[i] >> 8)) * 0x1p-24f >= p ? x[i] * scale
                                                                                    : 0;
    });
  }
}

class Dropout final : public Kernel {
 public:
  explicit Dropout(int64_t elements) : parts_((elements + kGroup - 1) / kGroup, kGroup * 8) {
    name = "own";
  }
  void run(const KernelArgs& args) override {
    parts_.run([&](int, int64_t begin, int64_t end) { loop(args, begin, end); });
  }

 private:
  const Parts parts_;
};

std::unique_ptr<Kernel> make(const Signature& s) {
  const int64_t elements = s.inputs[0].elements();
  if (can_stage(s) && elements % kGroup == 0) {
    return std::make_unique<StagedLoop>(s, loop, elements / kGroup, kGroup * 8);
  }
  const bool fits = s.inputs[0].dtype == DType::f32 && elements > 0;
  return fits && s.accumulate == 0 ? std::make_unique<Dropout>(elements) : nullptr;
}

}  // namespace

extern const CpuKernel cpu_dropout;
const CpuKernel cpu_dropout{"dropout", make};

}  // namespace thimble
