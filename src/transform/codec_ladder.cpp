#include "transform/codec_ladder.h"

#include <algorithm>

namespace thimble {
namespace {

// Bytes that a code leaves out of a number, what groups share apart.
double left_out(Codec codec, DType dtype) {
  return is_lossy(codec) ? static_cast<double>(size_of(dtype)) - codec->bits / 8 : 0;
}

class Ladder {
 public:
  Ladder(const Graph& graph, std::span<const Encodable> encodable,
         const std::vector<std::vector<ValueId>>& groups)
      : graph_(graph), encodable_(encodable), groups_(groups) {
    add({});
  }

  // Masks alone.
  void add_masks() { add(std::vector<Codec>(groups_.size(), sign_codec())); }

  // The first groups of each of `steps` growing numbers of them; the others are kept whole.
  void add_prefixes(Codec codec, size_t steps) {
    const size_t count = std::min(steps, groups_.size());
    for (size_t i = 1; i <= count; ++i) {
      std::vector<Codec> codecs(groups_.size(), sign_codec());
      std::fill_n(codecs.begin(), groups_.size() * i / count, codec);
      add(codecs);
    }
  }

  // All but one group, or that one alone.
  void add_single_groups(Codec codec) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<Codec> codecs(groups_.size(), sign_codec());
      codecs[g] = codec;
      add(codecs);
      std::fill(codecs.begin(), codecs.end(), codec);
      codecs[g] = sign_codec();
      add(codecs);
    }
  }

  size_t size() const { return encodings_.size(); }

  std::vector<Encoding> sorted() {
    std::stable_sort(encodings_.begin(), encodings_.end(),
                     [](const Encoding& a, const Encoding& b) { return a.risk < b.risk; });
    return std::move(encodings_);
  }

 private:
  void add(const std::vector<Codec>& by_group) {
    std::vector<Codec> by_value(graph_.values.size(), nullptr);
    for (size_t g = 0; g < by_group.size(); ++g) {
      for (const ValueId value : groups_[g]) by_value[value.at()] = by_group[g];
    }
    Encoding encoding;
    for (const Encodable& entry : encodable_) {
      const Value& value = graph_[entry.value];
      const Codec codec = kept_as(entry, value.type.dtype, by_value[entry.value.at()]);
      if (codec == nullptr) continue;
      encoding.values.push_back({value.name, codec});
      encoding.risk +=
          left_out(codec, value.type.dtype) * static_cast<double>(value.type.elements());
    }
    const bool known =
        std::any_of(encodings_.begin(), encodings_.end(),
                    [&](const Encoding& other) { return other.values == encoding.values; });
    if (!known) encodings_.push_back(std::move(encoding));
  }

  const Graph& graph_;
  const std::span<const Encodable> encodable_;
  const std::vector<std::vector<ValueId>>& groups_;
  std::vector<Encoding> encodings_;
};

}  // namespace

std::vector<Codec> rungs_of(const CodecSpec& spec) {
  if (!spec.automatic) return {spec.codec};
  std::vector<Codec> rungs;
  for (const Codec codec : codecs_by_error()) {
    if (codec->error > spec.codec->error) break;
    // One of each size: what loses least, unless it is another that was asked for.
    if (!rungs.empty() && rungs.back()->bits == codec->bits) {
      if (codec == spec.codec) rungs.back() = codec;
    } else {
      rungs.push_back(codec);
    }
  }
  return rungs;
}

std::vector<Encoding> encodings_to_try(const Graph& graph, const CodecSpec& spec,
                                       NumericsTier allowed, std::span<const Encodable> encodable,
                                       const std::vector<std::vector<ValueId>>& groups,
                                       size_t most) {
  Ladder ladder(graph, encodable, groups);
  std::vector<Codec> rungs = rungs_of(spec);
  if (allowed < NumericsTier::approximate) rungs = {sign_codec()};
  ladder.add_masks();
  if (rungs.size() == 1) return ladder.sorted();
  const size_t steps =
      std::max<size_t>(1, (most - std::min(most, ladder.size())) / (rungs.size() - 1));
  for (size_t r = 1; r < rungs.size(); ++r) ladder.add_prefixes(rungs[r], steps);
  for (size_t r = 1; r < rungs.size(); ++r) {
    if (ladder.size() + 2 * groups.size() <= most) ladder.add_single_groups(rungs[r]);
  }
  return ladder.sorted();
}

}  // namespace thimble
