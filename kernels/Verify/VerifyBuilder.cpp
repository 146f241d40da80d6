//===- VerifyBuilder.cpp - Several tokens of a row at once ----------------===//
//
// With S the state before the tokens, P_t the sum of the gates of tokens 0 to t
// and products of vectors channel by channel,
//     S_t x = S (e^{P_t} x) + sum_{s<t} d_s ((e^{P_t - P_s} k_s) . x)
// is what token t meets. So S is read once, for all of them; what is serial is
// a forward substitution over the d of each row of V. e^{P_t - P_s} is the
// product of the decays between: a difference of sums would lose digits.
//
//===----------------------------------------------------------------------===//

#include "kernels/Decode/RingProgram.h"
#include "kernels/FamilyBuilder.h"

using namespace mlir;
using namespace replayjit::internal;
using namespace replayjit::internal::replay;

namespace {

class VerifyProgram : public RingProgram {
public:
  using RingProgram::RingProgram;

private:
  const int numTokens = spec.numTokens;
  Value firstToken; ///< i64: the place of the row's first.
  Value count;      ///< How many there are, if not always all; i32.
  Value isInList;   ///< Of Ragged rows: their places are.

  void readRing() override {
    readTokens();
    RingProgram::readRing();
  }

  void readTokens() {
    firstToken = b.mulI(at.row64, b.i64(numTokens));
    if (spec.tokenRows == TokenRows::Full)
      return;
    if (spec.tokenRows == TokenRows::Counted) {
      count = loadRowInt("tokenCounts");
    } else {
      Value first = loadRowInt("tokenOffsets");
      Value end =
          b.loadScalar(b.argument("tokenOffsets"), b.addI(at.row64, b.i64(1)));
      Value past = b.addI(b.argument("tokens"), b.i32(1));
      isInList = b.allOf(b.isBelow(first, past), b.isBelow(end, past));
      check(isInList, ErrorKind::TokenOffset, first);
      firstToken = b.toI64(first);
      count = b.subI(end, first);
    }
    check(b.isBelow(count, b.i32(numTokens + 1)), ErrorKind::TokenCount, count);
  }

  Value isThere() override {
    Value isRow = RingProgram::isThere();
    return count ? b.allOf(isRow, negated(b.isEqual(count, b.i32(0)))) : isRow;
  }

  /// Token t has a place of its own; null: it always has.
  Value hasPlace(int t) {
    if (spec.tokenRows != TokenRows::Ragged)
      return {};
    return b.allOf(isInList, b.isLess(b.i32(t), count));
  }

  void placeToken(Value t) { tokenPlace = b.addI(firstToken, b.toI64(t)); }

  void nullRow() override {
    Value zeros = zeroOutput();
    for (int t = 0; t < numTokens; ++t) {
      placeToken(b.i32(t));
      b.storeTile(zeros, outView(hasPlace(t)));
    }
  }

  /// Reads all tokens. Those past the last are the last again: nobody looks at
  /// what they give.
  SmallVector<Token> readTokensOfRow() {
    SmallVector<Token> tokens;
    for (int t = 0; t < numTokens; ++t) {
      Value index = b.i32(t);
      if (count && t > 0)
        index = b.minI(index, b.subI(count, b.i32(1)));
      placeToken(index);
      tokens.push_back(readToken());
    }
    return tokens;
  }

  /// Of one token: e^{P_t}, and for each token s before it the products of
  /// e^{P_t - P_s} k_s with its k and q.
  struct Links {
    Value decay;
    SmallVector<Value> k, q; ///< k only if needsState().
  };

  SmallVector<Links> link(ArrayRef<Token> tokens) {
    SmallVector<Links> all;
    SmallVector<Value> keys;   // e^{P_t - P_s} k_s; of GDN k_s.
    SmallVector<Value> decays; // Of GDN e^{P_t - P_s}.
    for (auto [t, token] : llvm::enumerate(tokens)) {
      Value alpha = token.gate.alpha;
      Links links;
      links.decay = t ? b.mul(all.back().decay, alpha) : alpha;
      for (size_t s = 0; s < t; ++s) {
        if (spec.isKda)
          keys[s] = b.mul(keys[s], alpha);
        else
          decays[s] = s + 1 < t ? b.mul(decays[s], alpha) : alpha;
        auto product = [&](Value x) {
          Value sum = b.sum(b.mul(keys[s], x));
          return spec.isKda ? sum : b.mul(sum, decays[s]);
        };
        if (needsState())
          links.k.push_back(product(token.k));
        links.q.push_back(product(token.q));
      }
      keys.push_back(token.k);
      decays.push_back({});
      all.push_back(links);
    }
    return all;
  }

  void liveRow() override {
    SmallVector<Token> tokens = readTokensOfRow();
    b.describe("drafts");
    SmallVector<Links> links = link(tokens);
    b.describe("readout");
    Value total;
    if (spec.ringFormat != RingFormat::Raw)
      total = readTotal();
    Value state = readState(total);
    SmallVector<Value> vectors;
    auto decayed = [&](Value x, const Links &link) {
      return spec.isKda ? b.mul(x, link.decay) : x;
    };
    for (auto [token, link] : llvm::zip(tokens, links)) {
      vectors.push_back(decayed(token.q, link));
      if (needsState())
        vectors.push_back(decayed(token.k, link));
    }
    auto products = contract(state, vectors).getResults();
    for (auto [t, token] : llvm::enumerate(tokens)) {
      Value sq = products.front(), sk;
      products = products.drop_front();
      if (needsState()) {
        sk = products.front();
        products = products.drop_front();
      }
      auto all = [&](Value scalar) { return b.splat(scalar, token.v); };
      if (!spec.isKda) {
        sq = b.mul(all(links[t].decay), sq);
        if (sk)
          sk = b.mul(all(links[t].decay), sk);
      }
      for (size_t s = 0; s < t; ++s) {
        sq = b.fma(tokens[s].d, all(links[t].q[s]), sq);
        if (sk)
          sk = b.fma(tokens[s].d, all(links[t].k[s]), sk);
      }
      token.d = update(token, sk);
      storeOutput(t, output(token, b.fma(token.d, all(token.kq), sq)));
    }
    keep(state, tokens, total);
  }

  void storeOutput(int t, Value o) {
    placeToken(b.i32(t));
    if (spec.tokenRows == TokenRows::Counted)
      o = b.select(b.isLess(b.i32(t), count), o, b.constant(0, o));
    b.storeTile(o, outView(hasPlace(t)));
  }

  /// Folds the ring's rows into the checkpoint if the drafts of the next launch
  /// might not fit behind these, and appends the tokens either way.
  void keep(Value state, ArrayRef<Token> tokens, Value total) {
    Value folds = b.isLess(b.i32(spec.ringDepth - 2 * numTokens), at.cursor);
    if (spec.hasForceFlush)
      folds = b.anyOf(folds,
                      negated(b.isEqual(loadRowInt("forceFlush"), b.i32(0))));
    folds = b.allOf(folds, b.isLess(b.i32(0), at.cursor));
    b.when(folds, [&] { storeHistory(state); });
    append(tokens, total, folds, count);
  }
};

} // namespace

OwningOpRef<ModuleOp>
replayjit::internal::buildVerify(MLIRContext &context, const DecodeSpec &spec,
                                 const DecodeTuning &tuning) {
  return VerifyProgram(context, spec, tuning).build();
}
