// A data set of records of two lengths and a net that reads them, both of the caller's own: what it
// takes to add either.
#pragma once

#include <cmath>
#include <vector>

#include "model/layers.h"
#include "train/trainer.h"

namespace thimble {

constexpr int64_t kVocabulary = 11;

// Tokens in [1, 11), as many as `lengths` says by turns; 0 is padding. The target of each is the
// token itself, less one.
class Tokens final : public Dataset {
 public:
  Tokens(std::vector<int64_t> lengths, int64_t longest, int64_t train, int64_t test)
      : lengths_(std::move(lengths)) {
    info_ = {.name = "tokens", .train_count = train, .test_count = test};
    for (const char* name : {"tokens", "targets"}) {
      info_.fields.push_back({.name = name,
                              .dtype = DType::i32,
                              .shape = {longest},
                              .limit = kVocabulary,
                              .pad = info_.fields.empty() ? 0.0 : -1.0,
                              .variable = true});
    }
  }

  const DatasetInfo& info() const override { return info_; }
  int64_t length(Split, int64_t index, size_t) const override {
    return lengths_[static_cast<size_t>(index) % lengths_.size()];
  }
  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const std::span<int32_t> tokens = parts[0].all<int32_t>(), targets = parts[1].all<int32_t>();
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto salt = static_cast<size_t>(index) * 7 + (split == Split::test ? 3 : 0);
      targets[i] = static_cast<int32_t>((salt + i * i) % (kVocabulary - 1));
      tokens[i] = targets[i] + 1;
    }
  }

 private:
  DatasetInfo info_;
  std::vector<int64_t> lengths_;
};

// A linear layer on the tokens of a record, each predicted by itself: what stands behind a record's
// end changes nothing.
inline Model token_model(const ModelOptions& options) {
  Layers net(options);
  Builder& b = net.build();
  Model& model = net.model();
  const int64_t rows = options.batch, length = options.length;
  const std::vector<int64_t> flat = {rows * length};
  const ValueId tokens = b.input("tokens", {{rows, length}, DType::i32});
  const ValueId targets = b.input("targets", {{rows, length}, DType::i32});
  model.feeds = {{.value = tokens, .field = "tokens", .limit = kVocabulary},
                 {.value = targets, .field = "targets", .limit = kVocabulary}};
  ValueId x = b.op("reshape", {tokens}, {{"shape", std::vector<int64_t>{rows * length, 1}}});
  x = b.op("cast", {x}, {{"dtype", std::string("f32")}});
  x = net.linear("hidden", x, 16, "relu");
  const ValueId logits = net.linear("classifier", x, kVocabulary);
  const ValueId labels = b.op("reshape", {targets}, {{"shape", flat}});
  model.loss_normalizer = b.input("normalizer", {{1}, DType::f32});
  model.loss_counts = "targets";
  const ValueId right = b.op("count_correct", {logits, labels});
  model.loss = b.op("softmax_cross_entropy", {logits, labels, model.loss_normalizer},
                    {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-1}}});
  model.metrics = {{.name = "token_accuracy", .brief = "acc", .sum = right, .share = true},
                   {.name = "perplexity", .brief = "ppl", .of_mean = [](double loss) {
                      return std::exp(loss);
                    }}};
  model.graph.results = {model.loss, right};
  return std::move(model);
}

inline Recipe token_recipe(std::vector<int64_t> lengths, int64_t batch, int64_t microbatch = 0) {
  Recipe recipe;
  recipe.model = {.name = "tokens", .batch = batch, .classes = kVocabulary, .build = token_model};
  recipe.model.length = lengths.front();
  recipe.lengths = std::move(lengths);
  recipe.microbatch = microbatch;
  recipe.optimizer = parse_optimizer("adam");
  recipe.on.threads = 1;
  return recipe;
}

}  // namespace thimble
