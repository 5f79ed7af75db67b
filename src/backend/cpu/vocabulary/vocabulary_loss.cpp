// vocabulary_loss: chunk by chunk.
#include "backend/cpu/vocabulary/vocabulary_chunks.h"

namespace thimble {
namespace {

class VocabularyLoss final : public Kernel {
 public:
  explicit VocabularyLoss(const Signature& s) : chunks_(s, rooms_) {
    scratch_at_ = rooms_.take(chunks_.scratch_bytes());
    name = chunks_.name();
    workspace = rooms_.total();
  }

  void run(const KernelArgs& args) override {
    CpuVocabularyChunks::Sums sums;
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      const auto chunk = chunks_.run(args, i, args.workspace + scratch_at_, sums);
      std::copy_n(chunk.lse, chunk.rows, args.outputs[kOfLoss.lse()].as<float>() + chunk.first);
    }
    CpuVocabularyChunks::store(sums, args, kOfLoss.sums());
  }

 private:
  WorkspaceParts rooms_;
  CpuVocabularyChunks chunks_;
  int64_t scratch_at_ = 0;
};

}  // namespace

extern const CpuKernel cpu_vocabulary_loss{
    "vocabulary_loss", make_if_supported_where<VocabularyLoss, stageable_input>};

}  // namespace thimble
